//! [`dial`]: one connection to one server, from its address to its first reply.
//!
//! The redis crate's own way there reads the system's certificates at each attempt, on the thread
//! of the client and in the time of the attempt, and does not say how far it has come.

use std::io;
use std::sync::Arc;

use futures_util::future::select_ok;
use lock_store::{Instant, StoreError};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::SockRef;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

use super::driver::Driver;
use super::in_parts::InParts;
use super::progress::{Progress, Step};
use super::unreached;
use crate::access::Access;
use crate::credentials::{Asking, Session};
use crate::errors;

/// A connection, and the task that reads and writes it.
#[derive(Clone, Debug)]
pub(crate) struct Dialed {
    pub(crate) connection: MultiplexedConnection,
    /// `None` where the redis crate sees to it.
    pub(crate) driver: Option<Arc<Driver>>,
    /// When its credentials should be renewed.
    pub(crate) renew_at: Option<Instant>,
}

/// Connects, on the caller's runtime.
pub(crate) async fn dial(
    client: &Client,
    config: &AsyncConnectionConfig,
    access: &Access,
    asking: Option<Asking<'_>>,
    progress: &Progress,
) -> Result<Dialed, StoreError> {
    let info = client.get_connection_info();
    progress.at(Step::Reaching);
    let begin = async || {
        if asking.is_some() {
            progress.at(Step::Credentials);
        }
        Session::begin(info.redis_settings(), asking).await
    };
    let (session, dialed) = match info.addr() {
        ConnectionAddr::Tcp(host, port) => {
            let stream = reach(host, *port, info.tcp_settings()).await;
            let stream = stream.map_err(unreached::unreachable)?;
            let session = begin().await?;
            progress.at(Step::Greeting);
            let dialed = greet(&session, config, stream).await;
            (session, dialed)
        }
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host, port, .. } if access.tls.is_some() => {
            let stream = reach(host, *port, info.tcp_settings()).await;
            let stream = stream.map_err(unreached::unreachable)?;
            progress.at(Step::Handshake);
            let stream = access.handshake(host, stream).await;
            let stream = stream.map_err(|error| unreached::handshake_failed(&error, access))?;
            let session = begin().await?;
            progress.at(Step::GreetingOverTls);
            let dialed = greet(&session, config, stream).await;
            (session, dialed)
        }
        // A socket; or TLS with whatever certificate, if the redis crate was built for that.
        _ => {
            let session = begin().await?;
            progress.at(Step::Reaching);
            let dialed = by_the_redis_crate(info, &session, config).await;
            (session, dialed)
        }
    };
    let dialed = match dialed {
        Err(error) if !unreached::is_reply(&error) => {
            return Err(unreached::not_greeted(&error, access, progress));
        }
        Err(error) if session.is_asked => Err(unreached::refused_credentials(&error)),
        dialed => dialed.map_err(|error| errors::store_error(&error)),
    };
    progress.replied();
    dialed
}

async fn by_the_redis_crate(
    info: &ConnectionInfo,
    session: &Session,
    config: &AsyncConnectionConfig,
) -> Result<Dialed, RedisError> {
    let info = info.clone().set_redis_settings(session.settings.clone());
    let client = Client::open(info)?;
    let connection = client.get_multiplexed_async_connection_with_config(config);
    Ok(Dialed {
        connection: connection.await?,
        driver: None,
        renew_at: session.renew_at,
    })
}

/// A connection to the first address of a name that takes one.
async fn reach(host: &str, port: u16, settings: &TcpSettings) -> io::Result<TcpStream> {
    let attempts = lookup_host((host, port)).await?;
    let attempts = attempts.map(|address| Box::pin(TcpStream::connect(address)));
    let attempts: Vec<_> = attempts.collect();
    if attempts.is_empty() {
        return Err(io::Error::other("its name has no address"));
    }
    let (stream, _) = select_ok(attempts).await?;
    stream.set_nodelay(settings.nodelay())?;
    if let Some(keepalive) = settings.keepalive() {
        SockRef::from(&stream).set_tcp_keepalive(keepalive)?;
    }
    Ok(stream)
}

/// Says who the client is, and hears the first reply.
async fn greet<S>(
    session: &Session,
    config: &AsyncConnectionConfig,
    stream: S,
) -> Result<Dialed, RedisError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (stream, config) = (InParts::new(stream), config.clone());
    let made = MultiplexedConnection::new_with_config(&session.settings, stream, config);
    let (connection, driver) = made.await?;
    Ok(Dialed {
        connection,
        driver: Some(Arc::new(Driver::start(driver))),
        renew_at: session.renew_at,
    })
}

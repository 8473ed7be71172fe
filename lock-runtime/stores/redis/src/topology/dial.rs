//! [`dial`]: one connection to one server, from its address to its first reply.
//!
//! The redis crate's own way does not fit. It reads the system's certificates at each attempt, on
//! the client's thread and in the attempt's time. It does not tell how far an attempt has come.

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
use tokio::runtime::Handle;

use super::driver::Driver;
use super::in_parts::InParts;
use super::progress::{Progress, Step};
use super::traffic::Traffic;
use super::unreached;
use crate::access::Access;
use crate::credentials::{Asking, Session};

/// A connection, and the task that reads and writes it.
#[derive(Clone, Debug)]
pub(crate) struct Dialed {
    pub(crate) connection: MultiplexedConnection,
    /// `None` if the redis crate takes care of it.
    pub(crate) driver: Option<Arc<Driver>>,
    pub(crate) traffic: Arc<Traffic>,
    /// When its credentials should be renewed.
    pub(crate) renew_at: Option<Instant>,
}

/// Connects, on the current runtime, which also drives the connection.
pub(crate) async fn dial(
    client: &Client,
    config: &AsyncConnectionConfig,
    access: &Access,
    asking: Option<Asking<'_>>,
    progress: &Progress,
) -> Result<Dialed, StoreError> {
    dial_for(&Handle::current(), client, config, access, asking, progress).await
}

/// Connects on the current runtime, which needs I/O. Another one, which needs none, drives the
/// connection from its first reply on.
pub(crate) async fn dial_for(
    driven_by: &Handle,
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
            let dialed = greet(driven_by, &session, config, stream).await;
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
            let dialed = greet(driven_by, &session, config, stream).await;
            (session, dialed)
        }
        // A socket, or TLS without verification, if the redis crate was built for it.
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
        dialed => dialed.map_err(|error| unreached::refused(&error, &session)),
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
        traffic: Arc::default(),
        renew_at: session.renew_at,
    })
}

/// Connects to the first of a name's addresses that accepts.
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

/// Authenticates, and waits for the first reply.
async fn greet<S>(
    driven_by: &Handle,
    session: &Session,
    config: &AsyncConnectionConfig,
    stream: S,
) -> Result<Dialed, RedisError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let traffic = Arc::<Traffic>::default();
    let stream = InParts::new(stream, Arc::clone(&traffic));
    let config = config.clone();
    let made = MultiplexedConnection::new_with_config(&session.settings, stream, config);
    let (connection, driver) = made.await?;
    Ok(Dialed {
        connection,
        driver: Some(Arc::new(Driver::start(
            driven_by,
            driver,
            Arc::clone(&traffic),
        ))),
        traffic,
        renew_at: session.renew_at,
    })
}

//! [`dial`]: one connection to one server, from its address to its first reply.
//!
//! The redis crate's own way does not fit. It reads the system's certificates at each attempt, on
//! the client's thread and in the attempt's time. It does not tell how far an attempt has come.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lock_store::{Instant, StoreError};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::SockRef;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use super::driver::Driver;
use super::in_parts::InParts;
use super::progress::{ConnectStep, Progress};
use super::resp2;
use super::traffic::Traffic;
use super::unreached;
use crate::access::Access;
use crate::server_text::shown;
use crate::session::{Asking, Session};

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

/// Connects on the current runtime, which also drives the connection: at this address of the
/// server's name, if it has several.
pub(crate) async fn dial(
    client: &Client,
    at: Option<SocketAddr>,
    config: &AsyncConnectionConfig,
    access: &Access,
    asking: Option<Asking<'_>>,
    progress: &Progress,
) -> Result<Dialed, StoreError> {
    let driven_by = Handle::current();
    dial_for(&driven_by, client, at, config, access, asking, progress).await
}

/// Connects on the current runtime, which needs I/O. Another one, which needs none, drives the
/// connection from its first reply on.
pub(crate) async fn dial_for(
    driven_by: &Handle,
    client: &Client,
    at: Option<SocketAddr>,
    config: &AsyncConnectionConfig,
    access: &Access,
    asking: Option<Asking<'_>>,
    progress: &Progress,
) -> Result<Dialed, StoreError> {
    let info = client.get_connection_info();
    progress.at(ConnectStep::Reaching);
    let begin = async || {
        if asking.is_some() {
            progress.at(ConnectStep::Credentials);
        }
        Session::begin(info.redis_settings(), asking).await
    };
    let (session, dialed) = match info.addr() {
        ConnectionAddr::Tcp(host, port) => {
            let stream = reach(host, *port, at, info.tcp_settings()).await;
            let stream = stream.map_err(|error| unreached::unreachable(error, progress))?;
            let session = begin().await?;
            progress.at(ConnectStep::Greeting);
            let dialed = greet(driven_by, &session, config, stream).await;
            (session, dialed)
        }
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host, port, .. } if access.tls.is_some() => {
            let stream = reach(host, *port, at, info.tcp_settings()).await;
            let stream = stream.map_err(|error| unreached::unreachable(error, progress))?;
            progress.at(ConnectStep::Handshake);
            let stream = access.handshake(host, stream).await;
            let stream =
                stream.map_err(|error| unreached::handshake_failed(&error, access, progress))?;
            let session = begin().await?;
            progress.at(ConnectStep::GreetingOverTls);
            let dialed = greet(driven_by, &session, config, stream).await;
            (session, dialed)
        }
        // A socket, or TLS without verification, if the redis crate was built for it.
        _ => {
            let session = begin().await?;
            progress.at(ConnectStep::Reaching);
            let dialed = by_the_redis_crate(info, &session, config).await;
            (session, dialed)
        }
    };
    let dialed = match dialed {
        Err(error) if !unreached::is_reply(&error) => {
            if !progress.has_replied() && speaks_resp2(info, at, access).await {
                let text = "it closes the connection at `HELLO 3`, and answers `PING`";
                return Err(unreached::without_resp3(text));
            }
            return Err(unreached::not_greeted(&error, access, progress));
        }
        Err(error) if unreached::is_without_hello(&error) => {
            return Err(unreached::without_resp3(&shown(&error.to_string())));
        }
        dialed => dialed.map_err(|error| unreached::refused(&error, &session)),
    };
    progress.replied();
    dialed
}

/// Whether there is a Redis that does not know `HELLO`.
#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "of TLS"))]
async fn speaks_resp2(info: &ConnectionInfo, at: Option<SocketAddr>, access: &Access) -> bool {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => {
            match reach(host, *port, at, info.tcp_settings()).await {
                Ok(stream) => resp2::speaks(stream).await,
                Err(_) => false,
            }
        }
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host, port, .. } if access.tls.is_some() => {
            let stream = reach(host, *port, at, info.tcp_settings()).await;
            let Ok(stream) = stream else { return false };
            match access.handshake(host, stream).await {
                Ok(stream) => resp2::speaks(stream).await,
                Err(_) => false,
            }
        }
        _ => false,
    }
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

async fn reach(
    host: &str,
    port: u16,
    at: Option<SocketAddr>,
    settings: &TcpSettings,
) -> io::Result<TcpStream> {
    let stream = match at {
        Some(at) => TcpStream::connect(at).await?,
        None => TcpStream::connect((host, port)).await?,
    };
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

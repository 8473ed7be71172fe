//! [`dial`]: one connection to one server, from its address to its first reply.
//!
//! It tells how far an attempt has come.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lock_store::{Instant, StoreError};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::SockRef;
use redis::{Client, ConnectionAddr, ConnectionInfo, RedisError, Value};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use super::progress::{ConnectStep, Progress};
use super::resp2;
use super::unreached;
use crate::connection_login::{Asking, ConnectionLogin};
use crate::context::ClientContext;
use crate::resp::{self, Command, ConnectionEvents, Driver, RespConnection};
use crate::server_text::without_secrets;

/// A connection, and the task that reads it.
#[derive(Clone, Debug)]
pub(crate) struct Dialed {
    pub(crate) connection: RespConnection,
    pub(crate) driver: Arc<Driver>,
    /// When its credentials should be renewed.
    pub(crate) renew_at: Option<Instant>,
}

/// Connects at this address of the server's name, if it has several.
pub(crate) async fn dial(
    client: &Client,
    at: Option<SocketAddr>,
    events: Option<Box<dyn ConnectionEvents>>,
    context: &ClientContext,
    asking: Option<Asking<'_>>,
    progress: &Progress,
) -> Result<Dialed, StoreError> {
    let (info, access) = (client.get_connection_info(), &context.access);
    progress.at(ConnectStep::Reaching);
    let stream = reach(info, at).await;
    let stream = stream.map_err(|error| unreached::unreachable(error, progress))?;
    let (greeting, socket): (_, resp::Socket) = match stream {
        #[cfg(feature = "tls")]
        Stream::Tls(stream, host) => {
            progress.at(ConnectStep::Handshake);
            let stream = access.handshake(&host, stream).await;
            let stream =
                stream.map_err(|error| unreached::handshake_failed(&error, access, progress))?;
            let socket = resp::Socket::Owned(Box::new(stream));
            (ConnectStep::GreetingOverTls, socket)
        }
        Stream::Tcp(stream) => (ConnectStep::Greeting, stream.into()),
        #[cfg(unix)]
        Stream::Unix(stream) => (ConnectStep::Greeting, stream.into()),
    };
    if asking.is_some() {
        progress.at(ConnectStep::Credentials);
    }
    let login = ConnectionLogin::prepare(info.redis_settings(), asking).await?;
    progress.at(greeting);
    let command = context.timeouts.command;
    let (connection, driver) = resp::start(socket, &context.clock, command, events);
    match greet(&connection, &login).await {
        Err(error) if !unreached::is_reply(&error) => {
            if !progress.has_replied() && speaks_resp2(info, at, context).await {
                let text = "it closes the connection at `HELLO 3`, and answers `PING`";
                return Err(unreached::without_resp3(text));
            }
            return Err(unreached::not_greeted(&error, access, progress));
        }
        Err(error) if unreached::is_without_hello(&error) => {
            return Err(unreached::without_resp3(&without_secrets(
                &error.to_string(),
            )));
        }
        greeted => greeted.map_err(|error| unreached::refused(&error, &login))?,
    }
    progress.note_reply();
    Ok(Dialed {
        connection,
        driver: Arc::new(driver),
        renew_at: login.renew_at,
    })
}

/// Whether there is a Redis that does not know `HELLO`.
async fn speaks_resp2(
    info: &ConnectionInfo,
    at: Option<SocketAddr>,
    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "of TLS"))]
    context: &ClientContext,
) -> bool {
    match reach(info, at).await {
        #[cfg(feature = "tls")]
        Ok(Stream::Tls(stream, host)) => match context.access.handshake(&host, stream).await {
            Ok(stream) => resp2::is_resp2_only(stream).await,
            Err(_) => false,
        },
        Ok(Stream::Tcp(stream)) => resp2::is_resp2_only(stream).await,
        #[cfg(unix)]
        Ok(Stream::Unix(stream)) => resp2::is_resp2_only(stream).await,
        Err(_) => false,
    }
}

/// An accepted connection.
enum Stream {
    Tcp(TcpStream),
    /// With the name that its certificate has.
    #[cfg(feature = "tls")]
    Tls(TcpStream, String),
    #[cfg(unix)]
    Unix(UnixStream),
}

async fn reach(info: &ConnectionInfo, at: Option<SocketAddr>) -> io::Result<Stream> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => {
            let stream = reach_tcp(host, *port, at, info.tcp_settings()).await?;
            Ok(Stream::Tcp(stream))
        }
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host, port, .. } => {
            let stream = reach_tcp(host, *port, at, info.tcp_settings()).await?;
            Ok(Stream::Tls(stream, host.clone()))
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

async fn reach_tcp(
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

/// Authenticates, and waits for the first replies.
async fn greet(connection: &RespConnection, login: &ConnectionLogin) -> Result<(), RedisError> {
    let settings = &login.settings;
    let mut hello = Command::new("HELLO");
    hello.arg(3);
    if let Some(password) = settings.password() {
        let user = settings.username().unwrap_or("default");
        hello.arg("AUTH").arg(user).arg(password);
    }
    let mut select = Command::new("SELECT");
    select.arg(settings.db());
    let mut commands = vec![&hello];
    if settings.db() != 0 {
        commands.push(&select);
    }
    let replies = connection.send_together(&commands, false, None).await?;
    let mut replies = replies.into_iter();
    replies.try_for_each(|reply: Result<Value, RedisError>| reply.map(drop))
}

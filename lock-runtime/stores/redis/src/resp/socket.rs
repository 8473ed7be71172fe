//! [`Socket`]: a connected stream, and its end that callers write to.

use std::io::{self, Read as _};
use std::task::{Context, Poll};

use redis::io::tcp::socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, tcp};
#[cfg(unix)]
use tokio::net::{UnixStream, unix};

/// Both directions of a connection that only its task can write to.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A connected stream.
pub(crate) enum Socket {
    /// Callers write to it.
    Shared(Box<dyn AsyncRead + Send + Unpin>, Writer),
    /// Its task writes, as over TLS.
    #[cfg_attr(
        not(any(feature = "tls", test)),
        expect(dead_code, reason = "nothing else needs it")
    )]
    Owned(Box<dyn Duplex>),
}

/// Where callers write, on whichever thread.
#[derive(Debug)]
pub(crate) enum Writer {
    Tcp(tcp::OwnedWriteHalf),
    #[cfg(unix)]
    Unix(unix::OwnedWriteHalf),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self::Shared(Box::new(reader), Writer::Tcp(writer))
    }
}

#[cfg(unix)]
impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self::Shared(Box::new(reader), Writer::Unix(writer))
    }
}

impl Writer {
    /// Writes as much as the socket takes now. The number of bytes, and an error, which may be that
    /// it takes no more.
    pub(super) fn write(&self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            let wrote = match self {
                Self::Tcp(stream) => stream.try_write(rest),
                #[cfg(unix)]
                Self::Unix(stream) => stream.try_write(rest),
            };
            match wrote {
                Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
                Ok(bytes) => written += bytes,
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Reads what has come, without waiting, whatever the runtime knows of the socket.
    pub(super) fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*SockRef::from(stream.as_ref())).read(room),
            #[cfg(unix)]
            Self::Unix(stream) => (&*SockRef::from(stream.as_ref())).read(room),
        }
    }

    /// Waits until the socket takes more.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.as_ref().poll_write_ready(cx),
            #[cfg(unix)]
            Self::Unix(stream) => stream.as_ref().poll_write_ready(cx),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_written_whole_is_no_error() {
        let (server, client) = UnixStream::pair().unwrap();
        let Socket::Shared(_, writer) = Socket::from(client) else {
            panic!("callers write to it");
        };
        let is_ready = std::future::poll_fn(|cx| writer.poll_ready(cx)).await;
        is_ready.unwrap();
        for bytes in [&b"abc"[..], b""] {
            let (written, result) = writer.write(bytes);
            assert_eq!(written, bytes.len());
            result.unwrap();
        }
        drop(server);
        let (written, result) = writer.write(b"abc");
        assert_eq!((written, result.is_err()), (0, true));
    }
}

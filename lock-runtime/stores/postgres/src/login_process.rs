//! Which process the server named at the login, for requests to cancel. It is that of the session,
//! while a pooler makes up a number of its own.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio_postgres::Client;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// The driver gives the number to nobody. So it writes a request to cancel, which nobody gets.
pub(crate) async fn login_process(client: &Client) -> Option<i32> {
    let (to, mut from) = tokio::io::duplex(64);
    // If it asks for TLS, that is the answer.
    from.write_all(b"S").await.ok()?;
    let cancel = client.cancel_token();
    cancel.cancel_query_raw(to, Unencrypted).await.ok()?;
    let mut written = Vec::new();
    from.read_to_end(&mut written).await.ok()?;
    // At the end stand the process and its secret.
    let (process, _) = written.last_chunk::<8>()?.split_first_chunk()?;
    Some(i32::from_be_bytes(*process))
}

/// Takes the stream for one over TLS.
struct Unencrypted;

impl TlsConnect<DuplexStream> for Unencrypted {
    type Stream = UnencryptedStream;
    type Error = Infallible;
    type Future = Ready<Result<UnencryptedStream, Infallible>>;

    fn connect(self, stream: DuplexStream) -> Self::Future {
        ready(Ok(UnencryptedStream(stream)))
    }
}

struct UnencryptedStream(DuplexStream);

impl TlsStream for UnencryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for UnencryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, room)
    }
}

impl AsyncWrite for UnencryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

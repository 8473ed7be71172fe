//! [`InParts`]: gives in parts the replies that came together.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::driver::is_crowded;
use super::traffic::Traffic;

/// The maximum number of bytes in one read.
const BUFFER: usize = 8 * 1024;
/// The number of parts of one read. While the server works on the commands of one part's tasks, the
/// tasks of the next part run. If all tasks ran before anything is written, client and server would
/// take turns.
const PARTS: usize = 3;
/// The minimum number of bytes in a part: eight short replies.
const PART: usize = 40;

/// A stream whose reader gets the parts in turns with the tasks that they wake.
pub(super) struct InParts<S> {
    stream: S,
    buffer: Box<[u8]>,
    /// The range of the buffer that is still to be given out.
    from: usize,
    to: usize,
    /// The number of bytes to give out at once.
    part: usize,
    /// True if the reader has just got a part and does not know of the next.
    rests: bool,
    traffic: Arc<Traffic>,
}

impl<S> InParts<S> {
    pub(super) fn new(stream: S, traffic: Arc<Traffic>) -> Self {
        Self {
            stream,
            buffer: vec![0; BUFFER].into(),
            from: 0,
            to: 0,
            part: 0,
            rests: false,
            traffic,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InParts<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.from == this.to {
            let mut buffer = ReadBuf::new(&mut this.buffer);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer))?;
            (this.from, this.to) = (0, buffer.filled().len());
            if this.to > 0 {
                this.traffic.read();
            }
            // What one request waits for did not come together with anything.
            this.part = match this.traffic.is_shared() && !is_crowded() {
                true => this.to.div_ceil(PARTS).max(PART),
                false => this.to,
            };
        } else if std::mem::take(&mut this.rests) && !is_crowded() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let part = this.part.min(this.to - this.from).min(out.remaining());
        let (from, to) = (this.from, this.from + part);
        out.put_slice(this.buffer.get(from..to).unwrap_or_default());
        this.from = to;
        this.rests = this.from < this.to;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InParts<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.traffic.wrote();
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.traffic.wrote();
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// What the reader gets at each poll; `None` if it is to come back.
    async fn poll_each<const N: usize>(
        stream: &mut InParts<impl AsyncRead + Unpin>,
    ) -> [Option<usize>; N] {
        let mut got = [None; N];
        for got in &mut got {
            let mut bytes = [0; BUFFER];
            let mut out = ReadBuf::new(&mut bytes);
            let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_read(cx, &mut out)));
            *got = polled.await.is_ready().then(|| out.filled().len());
        }
        got
    }

    #[tokio::test]
    async fn replies_that_came_together_are_read_in_three_parts() {
        let (mut server, client) = tokio::io::duplex(BUFFER);
        let traffic = Arc::<Traffic>::default();
        let mut stream = InParts::new(client, Arc::clone(&traffic));
        let one = traffic.begin();
        server.write_all(&[b'x'; 120]).await.unwrap();
        assert_eq!(
            poll_each(&mut stream).await,
            [Some(120), None],
            "for one request"
        );
        let _another = traffic.begin();
        server.write_all(&[b'x'; 300]).await.unwrap();
        let part = Some(100);
        assert_eq!(
            poll_each(&mut stream).await,
            [part, None, part, None, part, None]
        );
        server.write_all(b"+OK\r\n").await.unwrap();
        server.write_all(b":1\r\n").await.unwrap();
        assert_eq!(poll_each(&mut stream).await, [Some(9), None]);
        drop((server, one));
        assert_eq!(poll_each(&mut stream).await, [Some(0)], "the end");
    }
}

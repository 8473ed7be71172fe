//! [`is_resp2_only`]: whether a server that closes the connection at `HELLO 3` speaks the older
//! protocol.
//!
//! Proxies that do not know `HELLO` close the connection, as a server does that is stopping or that
//! expects TLS. Such a proxy answers `PING`, and then closes at `HELLO 3` again.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const HELLO: &[u8] = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
/// How long each answer may take.
const LIMIT: Duration = Duration::from_millis(250);

/// Asks over a connection of its own.
pub(super) async fn is_resp2_only(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> bool {
    // A refusal is an answer too, such as the one that a password is missing.
    let answers = ask(&mut stream, PING).await;
    let answers = answers.is_some_and(|first| matches!(first, Ok(b'+' | b'-')));
    answers && matches!(ask(&mut stream, HELLO).await, Some(Err(_)))
}

/// The first byte of the line that comes back; an error if the connection ends, `None` if nothing
/// comes.
async fn ask(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    what: &[u8],
) -> Option<io::Result<u8>> {
    let exchange = async {
        stream.write_all(what).await?;
        let first = stream.read_u8().await?;
        while stream.read_u8().await? != b'\n' {}
        Ok(first)
    };
    tokio::time::timeout(LIMIT, exchange).await.ok()
}

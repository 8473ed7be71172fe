//! A replica's way to Redis, which can be cut: then everything stays open, and nothing arrives.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// A port that leads to the socket of a Redis.
#[derive(Debug)]
pub(crate) struct Network {
    port: u16,
    is_cut: watch::Sender<bool>,
}

impl Network {
    pub(crate) async fn to(socket: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (is_cut, cut) = watch::channel(false);
        tokio::spawn(serve(listener, socket.to_owned(), cut));
        Ok(Self { port, is_cut })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

async fn serve(listener: TcpListener, socket: PathBuf, cut: watch::Receiver<bool>) {
    while let Ok((client, _)) = listener.accept().await {
        let (socket, cut) = (socket.clone(), cut.clone());
        tokio::spawn(async move {
            // Either end closes the other one.
            let _ = connect(client, &socket, cut).await;
        });
    }
}

async fn connect(client: TcpStream, socket: &Path, cut: watch::Receiver<bool>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let redis = UnixStream::connect(socket).await?;
    let (from_client, to_client) = client.into_split();
    let (from_redis, to_redis) = redis.into_split();
    tokio::select! {
        ended = carry(from_client, to_redis, cut.clone()) => ended,
        ended = carry(from_redis, to_client, cut) => ended,
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut cut: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        if cut.wait_for(|is_cut| !is_cut).await.is_err() {
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
    }
}

//! [`KeyedPooler`]: it gives each transaction to any session, and tells each client the process of
//! the session that its login made.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A pooler as a test needs it. It ends with the test's runtime.
pub(crate) struct KeyedPooler {
    pub(crate) address: SocketAddr,
    sessions: Arc<Sessions>,
}

#[derive(Default)]
struct Sessions {
    free: Mutex<Vec<TcpStream>>,
    rotate: AtomicBool,
}

impl Sessions {
    /// There are as many as clients have logged in.
    fn take(&self) -> TcpStream {
        let mut free = self.free.lock().unwrap();
        match self.rotate.load(Ordering::Relaxed) {
            true => free.remove(0),
            false => free.pop().unwrap(),
        }
    }

    fn give_back(&self, session: TcpStream) {
        self.free.lock().unwrap().push(session);
    }
}

impl KeyedPooler {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sessions = Arc::<Sessions>::default();
        let all = Arc::clone(&sessions);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, server, Arc::clone(&all)));
            }
        });
        Self { address, sessions }
    }

    /// Until now, a client that is alone gets the session that was used last. From now on, the one
    /// that was free for the longest time.
    pub(crate) fn rotate(&self) {
        self.sessions.rotate.store(true, Ordering::Relaxed);
    }
}

async fn serve(mut client: TcpStream, server: SocketAddr, all: Arc<Sessions>) -> io::Result<()> {
    let mut session = TcpStream::connect(server).await?;
    let mut startup = vec![0; 4];
    client.read_exact(&mut startup).await?;
    read_rest(&mut client, &mut startup).await?;
    session.write_all(&startup).await?;
    pass_answer(&mut session, &mut client).await?;
    all.give_back(session);
    loop {
        let mut message = read_message(&mut client).await?;
        let mut session = all.take();
        loop {
            session.write_all(&message).await?;
            let is_end = matches!(message.first(), Some(b'S' | b'Q'));
            if is_end && pass_answer(&mut session, &mut client).await? == b'I' {
                break;
            }
            message = read_message(&mut client).await?;
        }
        all.give_back(session);
    }
}

/// What follows a length, which counts itself.
async fn read_rest(from: &mut TcpStream, message: &mut Vec<u8>) -> io::Result<()> {
    let length = message.last_chunk().copied().unwrap_or_default();
    let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
    from.read_exact(&mut rest).await?;
    message.extend(rest);
    Ok(())
}

async fn read_message(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 5];
    from.read_exact(&mut message).await?;
    read_rest(from, &mut message).await?;
    Ok(message)
}

/// Until the server is ready: then, whether it is in a transaction. What it says on its own is for
/// nobody.
async fn pass_answer(session: &mut TcpStream, client: &mut TcpStream) -> io::Result<u8> {
    loop {
        let message = read_message(session).await?;
        if message.first() == Some(&b'A') {
            continue;
        }
        client.write_all(&message).await?;
        if let [b'Z', .., state] = message[..] {
            return Ok(state);
        }
    }
}

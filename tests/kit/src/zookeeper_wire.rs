//! ZooKeeper's protocol, as far as tests look into a server: a client without heartbeats, whose
//! session ends soon.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The server's number for "there is no such node".
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

/// A connection with a session of its own.
#[derive(Debug)]
pub struct ZooKeeperSession {
    stream: TcpStream,
    number: i32,
}

fn text(body: &mut Vec<u8>, text: &[u8]) {
    let len = i32::try_from(text.len()).expect("a short text");
    body.extend(len.to_be_bytes());
    body.extend(text);
}

fn int(body: &[u8], at: usize) -> i32 {
    let bytes = body[at..at + 4].try_into().expect("four bytes");
    i32::from_be_bytes(bytes)
}

impl ZooKeeperSession {
    /// A new session at this server.
    ///
    /// # Errors
    /// If the server does not answer, or serves nobody.
    pub async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let mut session = Self { stream, number: 0 };
        let mut hello = Vec::new();
        hello.extend(0_i32.to_be_bytes());
        hello.extend(0_i64.to_be_bytes());
        hello.extend(5_000_i32.to_be_bytes());
        hello.extend(0_i64.to_be_bytes());
        text(&mut hello, &[0; 16]);
        session.write(&hello).await?;
        session.read().await?;
        Ok(session)
    }

    async fn write(&mut self, message: &[u8]) -> io::Result<()> {
        let mut framed = Vec::new();
        text(&mut framed, message);
        self.stream.write_all(&framed).await
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        let len = usize::try_from(self.stream.read_i32().await?).expect("a length");
        let mut message = vec![0; len];
        self.stream.read_exact(&mut message).await?;
        Ok(message)
    }

    /// The server's number for what is wrong, and the rest of its reply.
    async fn ask(&mut self, verb: i32, body: &[u8]) -> io::Result<(i32, Vec<u8>)> {
        self.number += 1;
        let mut message = self.number.to_be_bytes().to_vec();
        message.extend(verb.to_be_bytes());
        message.extend(body);
        self.write(&message).await?;
        let reply = self.read().await?;
        Ok((int(&reply, 12), reply[16..].to_vec()))
    }

    /// Makes a node that stays, with this data. One that is there is left as it is.
    ///
    /// # Panics
    /// If it can't.
    pub async fn create(&mut self, path: &str, data: &[u8]) {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        text(&mut body, data);
        body.extend(1_i32.to_be_bytes());
        body.extend(31_i32.to_be_bytes());
        text(&mut body, b"world");
        text(&mut body, b"anyone");
        body.extend(0_i32.to_be_bytes());
        let (error, _) = self.ask(1, &body).await.expect("it answers");
        assert!(matches!(error, 0 | NODE_EXISTS), "{path}: {error}");
    }

    /// The names of a node's children. None, if there is no node.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn children(&mut self, path: &str) -> Vec<String> {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        body.push(0);
        let (error, reply) = self.ask(8, &body).await.expect("it answers");
        if error == NO_NODE {
            return Vec::new();
        }
        assert_eq!(error, 0, "{path}");
        let mut at = 4;
        let name = |_| {
            let len = usize::try_from(int(&reply, at)).expect("a length");
            let name = String::from_utf8_lossy(&reply[at + 4..at + 4 + len]).into_owned();
            at += 4 + len;
            name
        };
        (0..int(&reply, 0)).map(name).collect()
    }

    /// The data of a node. `None`, if there is no node.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn data(&mut self, path: &str) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        body.push(0);
        let (error, reply) = self.ask(4, &body).await.expect("it answers");
        if error == NO_NODE {
            return None;
        }
        assert_eq!(error, 0, "{path}");
        let len = usize::try_from(int(&reply, 0)).unwrap_or(0);
        Some(reply[4..4 + len].to_vec())
    }

    /// Deletes a node without children.
    ///
    /// # Panics
    /// If it can't.
    pub async fn delete(&mut self, path: &str) {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        body.extend((-1_i32).to_be_bytes());
        let (error, _) = self.ask(2, &body).await.expect("it answers");
        assert!(matches!(error, 0 | NO_NODE), "{path}: {error}");
    }

    /// Ends the session.
    pub async fn close(mut self) {
        let _ = self.ask(-11, &[]).await;
    }
}

//! ZooKeeper's protocol, as far as tests look into a server: a client without heartbeats, whose
//! session ends in a minute.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::resp::CompleteRequest;

/// Finds the requests in the bytes that a client sends.
#[derive(Debug, Default)]
pub(crate) struct ZooKeeperRequests {
    /// The first message has no number and no verb.
    has_started: bool,
    /// The beginning of the message: its length, its number and its verb.
    head: Vec<u8>,
    /// How many of its bytes were read, with its length.
    read: usize,
}

/// The length of a transaction without parts: the heartbeat of a client that holds something.
const NO_PARTS: i32 = 17;

impl ZooKeeperRequests {
    const HEAD: usize = 12;

    /// Reads a chunk. Returns the requests that are complete at its end.
    pub(crate) fn read(&mut self, chunk: &[u8]) -> Vec<CompleteRequest> {
        let mut complete = Vec::new();
        for (position, &byte) in chunk.iter().enumerate() {
            self.read += 1;
            if self.head.len() < Self::HEAD {
                self.head.push(byte);
            }
            let has_length = self.head.len() >= 4;
            if has_length && self.read == 4 + usize::try_from(int(&self.head, 0)).unwrap_or(0) {
                let command = self.end();
                let end = position + 1;
                complete.extend(command.map(|command| CompleteRequest { command, end }));
            }
        }
        complete
    }

    fn end(&mut self) -> Option<String> {
        let head = std::mem::take(&mut self.head);
        self.read = 0;
        let was_first = !std::mem::replace(&mut self.has_started, true);
        if was_first || head.len() < Self::HEAD {
            return None;
        }
        let command = match int(&head, 8) {
            1 | 15 | 19 => "CREATE",
            2 => "DELETE",
            3 => "EXISTS",
            4 => "DATA",
            8 | 12 => "CHILDREN",
            9 => "SYNC",
            14 if int(&head, 0) == NO_PARTS => "BEAT",
            14 => "MULTI",
            _ => "OTHER",
        };
        Some(command.to_owned())
    }
}

/// The server's number for "there is no such node".
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

/// The kinds of nodes.
const STAYS: i32 = 0;
const EPHEMERAL: i32 = 1;

const ALL_FOR_ALL: (i32, &str, &str) = (31, "world", "anyone");

/// So many requests and replies fit into the buffers between.
const AT_ONCE: usize = 200;

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

/// Rights, a scheme, and who of it has them.
fn put_acl(body: &mut Vec<u8>, (rights, scheme, user): (i32, &str, &str)) {
    body.extend(1_i32.to_be_bytes());
    body.extend(rights.to_be_bytes());
    text(body, scheme.as_bytes());
    text(body, user.as_bytes());
}

/// The texts of a reply that is a list of them.
fn names(reply: &[u8]) -> Vec<String> {
    let mut at = 4;
    let name = |_| {
        let len = usize::try_from(int(reply, at)).expect("a length");
        let name = String::from_utf8_lossy(&reply[at + 4..at + 4 + len]).into_owned();
        at += 4 + len;
        name
    };
    (0..int(reply, 0)).map(name).collect()
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
        hello.extend(60_000_i32.to_be_bytes());
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
        self.send(verb, body).await?;
        self.read_reply().await
    }

    async fn send(&mut self, verb: i32, body: &[u8]) -> io::Result<()> {
        self.number += 1;
        let mut message = self.number.to_be_bytes().to_vec();
        message.extend(verb.to_be_bytes());
        message.extend(body);
        self.write(&message).await
    }

    async fn read_reply(&mut self) -> io::Result<(i32, Vec<u8>)> {
        let reply = self.read().await?;
        Ok((int(&reply, 12), reply[16..].to_vec()))
    }

    /// Makes a node that stays, with this data. One that is there is left as it is.
    ///
    /// # Panics
    /// If it can't.
    pub async fn create(&mut self, path: &str, data: &[u8]) {
        let error = self.create_with(path, data, ALL_FOR_ALL, STAYS).await;
        assert!(matches!(error, 0 | NODE_EXISTS), "{path}: {error}");
    }

    /// Makes a node without data that ends with this session.
    ///
    /// # Panics
    /// If it can't.
    pub async fn create_ephemeral(&mut self, path: &str) {
        let error = self.create_with(path, b"", ALL_FOR_ALL, EPHEMERAL).await;
        assert_eq!(error, 0, "{path}");
    }

    /// Makes a node without data that stays. This session's user may create, read, write and
    /// delete there, and nobody else anything. The server's number for what is wrong, or zero.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn create_own(&mut self, path: &str) -> i32 {
        self.create_with(path, b"", (15, "auth", ""), STAYS).await
    }

    /// Makes a node without data that stays, at which all may do no more than these `rights`: 1 to
    /// read, 2 to write, 4 to create, 8 to delete, 16 to change that.
    ///
    /// # Panics
    /// If it can't.
    pub async fn create_for_all(&mut self, path: &str, rights: i32) {
        let error = self
            .create_with(path, b"", (rights, "world", "anyone"), STAYS)
            .await;
        assert_eq!(error, 0, "{path}");
    }

    /// From now on, all may do this at a node.
    ///
    /// # Panics
    /// If it can't.
    pub async fn allow_all(&mut self, path: &str, rights: i32) {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        put_acl(&mut body, (rights, "world", "anyone"));
        body.extend((-1_i32).to_be_bytes());
        let error = self.ask(7, &body).await.expect("it answers").0;
        assert_eq!(error, 0, "{path}");
    }

    async fn create_with(
        &mut self,
        path: &str,
        data: &[u8],
        acl: (i32, &str, &str),
        kind: i32,
    ) -> i32 {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        text(&mut body, data);
        put_acl(&mut body, acl);
        body.extend(kind.to_be_bytes());
        self.ask(1, &body).await.expect("it answers").0
    }

    /// Logs in as this `user:password`.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn log_in(&mut self, user: &str) -> io::Result<()> {
        let mut message = (-4_i32).to_be_bytes().to_vec();
        message.extend(100_i32.to_be_bytes());
        message.extend(0_i32.to_be_bytes());
        text(&mut message, b"digest");
        text(&mut message, user.as_bytes());
        self.write(&message).await?;
        self.read().await.map(drop)
    }

    /// The names of a node's children. None, if there is no node.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn children(&mut self, path: &str) -> Vec<String> {
        self.children_of(&[path.to_owned()]).await.remove(0)
    }

    /// The same of several nodes, which are asked for at once.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn children_of(&mut self, paths: &[String]) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for paths in paths.chunks(AT_ONCE) {
            for path in paths {
                let mut body = Vec::new();
                text(&mut body, path.as_bytes());
                body.push(0);
                self.send(8, &body).await.expect("it takes requests");
            }
            for path in paths {
                let (error, reply) = self.read_reply().await.expect("it answers");
                assert!(matches!(error, 0 | NO_NODE), "{path}: {error}");
                found.push(if error == 0 {
                    names(&reply)
                } else {
                    Vec::new()
                });
            }
        }
        found
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

    /// Writes other data to a node, whatever is there.
    ///
    /// # Panics
    /// If it can't.
    pub async fn set_data(&mut self, path: &str, data: &[u8]) {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        text(&mut body, data);
        body.extend((-1_i32).to_be_bytes());
        let error = self.ask(5, &body).await.expect("it answers").0;
        assert_eq!(error, 0, "{path}");
    }

    /// Deletes a node without children.
    ///
    /// # Panics
    /// If it can't.
    pub async fn delete(&mut self, path: &str) {
        let error = self.try_delete(path).await;
        assert!(matches!(error, 0 | NO_NODE), "{path}: {error}");
    }

    /// The same, and the server's number for what is wrong, or zero.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn try_delete(&mut self, path: &str) -> i32 {
        let mut body = Vec::new();
        text(&mut body, path.as_bytes());
        body.extend((-1_i32).to_be_bytes());
        self.ask(2, &body).await.expect("it answers").0
    }

    /// Ends the session.
    pub async fn close(mut self) {
        let _ = self.ask(-11, &[]).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_wherever_the_stream_is_cut() {
        let mut all = Vec::new();
        text(&mut all, b"hello, and no number");
        for (number, verb) in [(1_i32, 15_i32), (2, 9), (3, 2)] {
            let body = [&number.to_be_bytes()[..], &verb.to_be_bytes(), b"path"].concat();
            text(&mut all, &body);
        }
        for cut in 0..=all.len() {
            let mut requests = ZooKeeperRequests::default();
            let mut found = requests.read(&all[..cut]);
            found.extend(requests.read(&all[cut..]));
            let commands: Vec<&str> = found.iter().map(|found| &*found.command).collect();
            assert_eq!(commands, ["CREATE", "SYNC", "DELETE"], "cut at {cut}");
        }
    }
}

//! The requests of clients, as the server saw them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A record of requests by `MONITOR`. Begins with [`RedisServer::requests`].
///
/// Unlike `INFO commandstats`, it separates clients' requests from the commands of scripts, and has
/// each request's sender and arguments. Redis leaves out administration (`CONFIG`, `DEBUG`, …). The
/// test's own questions to the server are recorded as well.
///
/// [`RedisServer::requests`]: crate::RedisServer::requests
#[derive(Debug)]
pub struct RequestLog {
    lines: Lines<BufReader<OwnedReadHalf>>,
    /// Kept open as long as the log: closing this half would end the other.
    _requests: OwnedWriteHalf,
    server: SocketAddr,
    password: Option<String>,
}

/// One request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its origin, such as `127.0.0.1:50100` or `unix:/tmp/redis.sock`.
    pub client: String,
    /// The command, in lower case.
    pub command: String,
    /// The command and all arguments, each in quotes, in Redis' format.
    pub text: String,
}

impl RequestLog {
    pub(crate) async fn start(server: SocketAddr, password: Option<&str>) -> Self {
        let (mut lines, mut requests) = connect(server, password).await;
        requests
            .write_all(b"MONITOR\r\n")
            .await
            .expect("MONITOR can be sent");
        let answer = next_line(&mut lines).await;
        assert_eq!(answer, "+OK", "MONITOR was refused");
        Self {
            lines,
            _requests: requests,
            server,
            password: password.map(str::to_owned),
        }
    }

    /// Every request answered since the last call, in the order of execution.
    pub async fn take(&mut self) -> Vec<Request> {
        // A unique request marks the end: all requests answered earlier are recorded before it.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mark = format!("request-log-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let (mut answers, mut requests) = connect(self.server, self.password.as_deref()).await;
        requests
            .write_all(format!("PING {mark}\r\n").as_bytes())
            .await
            .expect("a mark can be sent");
        next_line(&mut answers).await;

        let mut found = Vec::new();
        loop {
            let line = next_line(&mut self.lines).await;
            let Some(request) = parse(&line) else {
                continue;
            };
            if request.text.contains(&mark) {
                // The connection that set the mark may have sent its password first.
                found.retain(|earlier: &Request| earlier.client != request.client);
                return found;
            }
            found.push(request);
        }
    }
}

/// Inline commands and one-line answers are all that is needed here.
async fn connect(
    server: SocketAddr,
    password: Option<&str>,
) -> (Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf) {
    let stream = TcpStream::connect(server)
        .await
        .unwrap_or_else(|error| panic!("cannot connect to {server}: {error}"));
    let (answers, mut requests) = stream.into_split();
    let mut lines = BufReader::new(answers).lines();
    if let Some(password) = password {
        requests
            .write_all(format!("AUTH {password}\r\n").as_bytes())
            .await
            .expect("the password can be sent");
        let answer = next_line(&mut lines).await;
        assert_eq!(answer, "+OK", "the password was refused");
    }
    (lines, requests)
}

async fn next_line(lines: &mut Lines<BufReader<OwnedReadHalf>>) -> String {
    timeout(ANSWER_LIMIT, lines.next_line())
        .await
        .expect("the server answers within 30 s")
        .expect("the connection holds")
        .expect("the server does not close the connection")
}

/// `+1339518083.107412 [0 127.0.0.1:60866] "SET" "key" "value"`. A script's commands have `lua`
/// instead of an address, and are no requests.
fn parse(line: &str) -> Option<Request> {
    let (_, rest) = line.split_once(" [")?;
    let (origin, text) = rest.split_once("] ")?;
    let (_database, client) = origin.split_once(' ')?;
    if client == "lua" {
        return None;
    }
    let command = text.strip_prefix('"')?.split_once('"')?.0.to_lowercase();
    Some(Request {
        client: client.to_owned(),
        command,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_client_s_request_is_taken_apart() {
        let request =
            parse(r#"+1339518083.107412 [0 127.0.0.1:60866] "SET" "a] \"b" "1""#).expect("parses");
        assert_eq!(request.client, "127.0.0.1:60866");
        assert_eq!(request.command, "set");
        assert_eq!(request.text, r#""SET" "a] \"b" "1""#);
    }

    #[test]
    fn a_script_s_command_is_no_request() {
        assert_eq!(parse(r#"+1339518083.107412 [0 lua] "set" "a" "1""#), None);
    }
}

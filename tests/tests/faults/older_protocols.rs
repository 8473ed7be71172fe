//! Servers, and proxies before them, that do not know `HELLO 3`, and what the client says of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, StoreErrorKind};
use lock_testkit::RedisServer;

use crate::{timed, unavailable};

/// A proxy that answers `PING`, and anything else as `answer` says: by that, or by the end of the
/// connection.
fn proxy(answer: Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || serve(client, answer));
        }
    });
    address
}

fn serve(mut client: TcpStream, answer: Option<&str>) {
    let mut request = [0; 1024];
    while let Ok(length @ 1..) = client.read(&mut request) {
        let reply = match request[..length].windows(4).any(|word| word == b"PING") {
            true => Some("+PONG\r\n"),
            false => answer,
        };
        let Some(reply) = reply else { return };
        if client.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// What a client says that would wait for long, and how long it took.
async fn said_at_once(url: &str) -> String {
    let begun = Instant::now();
    let client = LockClient::builder().url(url).connect_lazy().unwrap();
    let request = client.lock("k").wait(Duration::from_secs(30)).acquire();
    let error = request.await.unwrap_err();
    let said = error.to_string();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?} {url}: {said}",
        begun.elapsed()
    );
    assert_eq!(
        unavailable::<()>(Err(error)),
        StoreErrorKind::Misconfigured,
        "{said}"
    );
    said
}

#[tokio::test]
async fn a_proxy_that_closes_at_hello_or_does_not_know_it_is_told_at_once() {
    let unknown = "-ERR unknown command 'HELLO', with args beginning with: '3' 'canary'\r\n";
    for (answer, words) in [
        (None, "closes the connection at `HELLO 3`"),
        (Some(unknown), "unknown command 'HELLO'"),
        (Some("-ERR unknown command `HELLO`\r\n"), "HELLO"),
        (Some("-NOPROTO unsupported protocol version\r\n"), "NOPROTO"),
        (
            Some("-invalid request: unsupported command 'hello'\r\n"),
            "unsupported command",
        ),
        (
            Some("*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:2\r\n"),
            "version 2",
        ),
    ] {
        let address = proxy(answer);
        // A sentinel sends no messages: any version of the protocol will do.
        let sentinel = (words != "version 2").then_some(("-sentinel", "/m"));
        for (kind, rest) in [("", ""), ("-cluster", "")].into_iter().chain(sentinel) {
            let said = said_at_once(&format!("redis{kind}://:canary@{address}{rest}")).await;
            for says in ["RESP3", "Redis 6", "`SUBSCRIBE`", words] {
                assert!(said.contains(says), "{kind} {answer:?}: {said}");
            }
            assert!(!said.contains("canary"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_server_whose_hello_was_renamed_is_told_at_once() {
    let server = RedisServer::builder().arg("--rename-command");
    let server = server.arg("HELLO").arg("").start().await;
    let said = said_at_once(&server.url()).await;
    assert!(said.contains("RESP3"), "{said}");
}

/// It may be starting, or expect TLS.
#[tokio::test]
async fn a_server_that_closes_every_connection_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let client = LockClient::builder().url(format!("redis://{address}"));
    let client = client.connect_lazy().unwrap();
    let wait = Duration::from_secs(1);
    let (refused, took) = timed(client.lock("k").wait(wait).acquire()).await;
    let said = refused.as_ref().unwrap_err().to_string();
    assert!(
        took >= wait - Duration::from_millis(200),
        "{took:?}: {said}"
    );
    assert_eq!(unavailable(refused), StoreErrorKind::Disconnected);
    assert!(!said.contains("RESP3"), "{said}");
}

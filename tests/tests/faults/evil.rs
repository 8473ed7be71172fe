//! Servers, or what stands in their place, that send without end, or what is no reply.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::RedisServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a request for this key is answered with.
const EVIL: &[u8] = b"lock:evil";
/// What a reply may have, with some room, and what is on the way: as much as the system keeps at
/// both ends before anybody reads it.
fn little() -> usize {
    let most = |setting: &str| {
        let path = format!("/proc/sys/net/ipv4/{setting}");
        let sizes = std::fs::read_to_string(path).unwrap_or_default();
        let most = sizes.split_whitespace().last();
        most.map_or(8 << 20, |most| most.parse().unwrap())
    };
    (20 << 20) + most("tcp_rmem") + most("tcp_wmem")
}

/// Forwards what a server says, until a request is for the key.
struct EvilServer {
    addr: SocketAddr,
    /// The most that it has sent over one connection.
    sent: Arc<AtomicUsize>,
    is_good: Arc<AtomicBool>,
}

impl EvilServer {
    async fn start(target: SocketAddr, begin: &'static str, more: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (addr, sent) = (
            listener.local_addr().unwrap(),
            Arc::<AtomicUsize>::default(),
        );
        let (most, is_good) = (Arc::clone(&sent), Arc::<AtomicBool>::default());
        let good = Arc::clone(&is_good);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(target).await.unwrap();
                let (most, good) = (Arc::clone(&most), Arc::clone(&good));
                tokio::spawn(async move {
                    if pass_on(server, &client, &good).await {
                        send_without_end(client, begin, more, &most).await;
                    }
                });
            }
        });
        Self {
            addr,
            sent,
            is_good,
        }
    }
}

/// True if the key was asked for.
async fn pass_on(mut server: TcpStream, client: &TcpStream, good: &AtomicBool) -> bool {
    let (mut request, mut reply) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            ready = client.readable() => {
                ready.unwrap();
                let Ok(bytes) = client.try_read(&mut request) else { continue };
                if bytes == 0 {
                    return false;
                }
                let request = &request[..bytes];
                let is_evil = request.windows(EVIL.len()).any(|some| some == EVIL);
                if is_evil && !good.load(Ordering::Relaxed) {
                    return true;
                }
                server.write_all(request).await.unwrap();
            }
            bytes = server.read(&mut reply) => {
                let mut rest = &reply[..bytes.unwrap()];
                while !rest.is_empty() {
                    client.writable().await.unwrap();
                    rest = &rest[client.try_write(rest).unwrap_or(0)..];
                }
            }
        }
    }
}

async fn send_without_end(mut client: TcpStream, begin: &str, more: &str, most: &AtomicUsize) {
    let more = more.repeat((64 << 10) / more.len());
    let mut sent = 0;
    let mut next = begin;
    while client.write_all(next.as_bytes()).await.is_ok() {
        sent += next.len();
        most.fetch_max(sent, Ordering::Relaxed);
        next = &more;
    }
}

#[tokio::test]
async fn a_server_that_sends_without_end_is_left_and_takes_little_memory() {
    let server = RedisServer::start().await;
    for (begin, more, says) in [
        ("$99999999999\r\n", "x", "16777216 bytes"),
        ("$16777000\r\n", "x", "not in the Redis protocol"),
        ("*99999999999\r\n", ":1\r\n", "1048576 values"),
        (
            "*1048576\r\n",
            "+xxxxxxxxxxxxxxxxxxxxxx\r\n",
            "16777216 bytes",
        ),
        ("*1\r\n", "*1\r\n", "16 values in values"),
        ("+", "x", "65536 bytes in a line"),
        (
            "HTTP/1.1 400 Bad Request\r\n",
            "x",
            "not in the Redis protocol",
        ),
    ] {
        let evil = EvilServer::start(server.addr(), begin, more).await;
        // What it still sends over the next connection is read until that is too much.
        let client = LockClient::builder().url(format!("redis://{}/", evil.addr));
        let client = client.unavailable_after(Duration::from_secs(20));
        // What ends it is what was sent, however long that takes to be read.
        let client = client.command_timeout(Duration::from_secs(10));
        let client = client.connect().await.unwrap();
        let refused = client.lock("evil").wait(Duration::from_secs(1)).acquire();
        let said = refused.await.unwrap_err();
        let mut chain = format!("{said}");
        let mut source = std::error::Error::source(&said);
        while let Some(error) = source {
            chain = format!("{chain}: {error}");
            source = error.source();
        }
        assert!(chain.contains(says), "{begin:?}: {chain}");
        let sent = evil.sent.load(Ordering::Relaxed);
        assert!(sent <= little(), "{begin:?}: {sent}");
        evil.is_good.store(true, Ordering::Relaxed);
        let good = client.lock("k").wait(Duration::from_secs(10)).acquire();
        good.await.unwrap().release().await.unwrap();
    }
}

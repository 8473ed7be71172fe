//! The behaviours of the contract, as far as memcached can do what they need.
#![expect(clippy::expect_used, reason = "a test that can't go on has failed")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lock_example_memcached::capabilities;
use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{ClientId, Clock, Listener, Store};
use lock_testkit::conformance::Engine;
use lock_testkit::{Asks, Backend, StoreUnderTest, context, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MEMCACHED: Engine = Engine::new("memcached", || Box::pin(Memcached::start()))
    .that_can(capabilities)
    .at_once(8);

lock_testkit::conformance!(MEMCACHED);

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// A server of its own.
#[derive(Debug)]
struct Memcached {
    process: Child,
    address: String,
}

impl Memcached {
    async fn start() -> Backend {
        let port = free_port();
        let process = Command::new("memcached")
            .args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0"])
            .args(["-u", "nobody", "--disable-evictions"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("memcached is installed: apt-get install memcached, or brew install memcached");
        let server = Self {
            process,
            address: format!("127.0.0.1:{port}"),
        };
        eventually("memcached listens", async || {
            TcpStream::connect(&server.address).await.is_ok()
        })
        .await;
        Backend::new(server)
    }

    /// The reply to a command whose lines end with `END`, or that the server can't do now.
    async fn ask(&self, line: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("it listens");
        let line = format!("{line}\r\n");
        stream.write_all(line.as_bytes()).await.expect("it reads");
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        let ends = |text: &str| {
            text.ends_with("END\r\n") || text.starts_with("BUSY") && text.ends_with("\r\n")
        };
        while !ends(&text) {
            let read = stream.read(&mut buffer).await.expect("it answers");
            assert!(read > 0, "it hung up: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        text
    }
}

impl StoreUnderTest for Memcached {
    fn builder(&self) -> LockClientBuilder {
        let address = self.address.clone();
        LockClient::builder()
            .command_timeout(Duration::from_secs(3))
            .store(move |context| lock_example_memcached::open(&address, context))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let context = context("lock", id, listener, clock);
        lock_example_memcached::open(&self.address, context).expect("a good address")
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async {
            loop {
                // Items that have expired are not listed.
                let dump = self.ask("lru_crawler metadump all").await;
                if !dump.starts_with("BUSY") {
                    return dump.lines().filter(|line| line.starts_with("key=")).count();
                }
                // The server itself goes through its items now.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! A memcached of a test's own.

use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{ClientId, Clock, Listener, Store};
use lock_testkit::{Asks, Port, StoreUnderTest, context, eventually};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server of a test's own.
#[derive(Debug)]
pub(crate) struct Memcached {
    process: Mutex<Child>,
    port: Port,
    pub(crate) address: String,
    arguments: Vec<&'static str>,
}

impl Memcached {
    pub(crate) async fn start_with(arguments: &[&'static str]) -> Self {
        let port = Port::free();
        let arguments = arguments.to_vec();
        let server = Self {
            process: Mutex::new(launch(port.number(), &arguments)),
            address: format!("127.0.0.1:{}", port.number()),
            port,
            arguments,
        };
        server.await_listening().await;
        server
    }

    async fn await_listening(&self) {
        eventually("memcached listens", async || {
            TcpStream::connect(&self.address).await.is_ok()
        })
        .await;
    }

    fn signal(&self, signal: Signal) -> Pid {
        let process = self.process.lock().expect("no test panics in here");
        let id = Pid::from_raw(process.id().try_into().expect("an id"));
        kill(id, signal).expect("it is this process's child");
        id
    }

    fn end(&self) {
        let mut process = self.process.lock().expect("no test panics in here");
        process.kill().expect("it can be killed");
        process.wait().expect("it ends");
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

fn launch(port: u16, arguments: &[&str]) -> Child {
    Command::new("memcached")
        .args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0"])
        .args(["-u", "nobody"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("memcached is installed: apt-get install memcached, or brew install memcached")
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

    fn pause(&self) -> bool {
        let id = self.signal(Signal::SIGSTOP);
        // All of its threads stand still when this is reported.
        let paused = waitpid(id, Some(WaitPidFlag::WUNTRACED));
        matches!(paused, Ok(WaitStatus::Stopped(..)))
    }

    fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn kill(&self) -> bool {
        self.end();
        true
    }

    fn restart(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            *self.process.lock().expect("no test panics in here") =
                launch(self.port.number(), &self.arguments);
            self.await_listening().await;
        })
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        self.end();
    }
}

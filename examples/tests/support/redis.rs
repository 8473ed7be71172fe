//! A real Redis for a test.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lock_testkit::Port;

use crate::program::PASSWORD;

/// A `redis-server` of its own, with a password. It is gone at the end of the test.
pub(crate) struct RedisServer {
    process: Child,
    port: Port,
    folder: PathBuf,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        let port = Port::free();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{port}"));
        fs::create_dir_all(&folder).unwrap();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", ""])
            .args(["--port", &port.to_string(), "--requirepass", PASSWORD])
            .arg("--dir")
            .arg(&folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("these tests need redis-server");
        let server = Self {
            process,
            port,
            folder,
        };
        let give_up = Instant::now() + Duration::from_secs(10);
        while server.try_ask("PING").as_deref() != Some("+PONG\r\n") {
            assert!(Instant::now() < give_up, "redis-server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{}/", self.port)
    }

    pub(crate) fn ask(&self, command: &str) -> String {
        self.try_ask(command).unwrap()
    }

    fn try_ask(&self, command: &str) -> Option<String> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port.number())).ok()?;
        write!(connection, "AUTH {PASSWORD}\r\n{command}\r\nQUIT\r\n").ok()?;
        let mut replies = String::new();
        connection.read_to_string(&mut replies).ok()?;
        Some(
            replies
                .strip_prefix("+OK\r\n")?
                .strip_suffix("+OK\r\n")?
                .to_owned(),
        )
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

//! A real `redis-server` for one test.

mod builder;
mod program;
mod questions;
mod replica;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{fs, io};

use tempfile::TempDir;

pub use self::builder::RedisServerBuilder;
use self::builder::Settings;
pub use self::program::{
    redis_version, server_is_at_least, server_reloads_slowly, server_speaks_tls,
};
use crate::os_process::OsProcess;
use crate::temporary::temporary_folder;
use crate::{Port, eventually};

/// The time limit for a server's first answer.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A `redis-server` process with its own free port on the loopback interface and its own temporary
/// folder.
///
/// It keeps nothing on disk without [`appendonly`](RedisServerBuilder::appendonly). Dropping it
/// kills the process, even if it is paused, and removes the folder. Only if the test process itself
/// is killed do they stay.
///
/// # Examples
///
/// ```no_run
/// # async fn example() {
/// use lock_testkit_core::RedisServer;
///
/// let server = RedisServer::start().await;
/// server.command(&["SET", "a", "1"]).await;
/// server.kill();
/// server.restart().await;
/// assert!(server.keys("*").await.is_empty(), "nothing was written to disk");
/// # }
/// ```
#[derive(Debug)]
pub struct RedisServer {
    // First: fields are dropped in order, and the process uses the others.
    process: Mutex<OsProcess>,
    settings: Settings,
    port: Port,
    folder: TempDir,
}

impl RedisServer {
    /// Starts a server with the harness's defaults. Returns when it answers.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A builder for a server with other settings.
    #[must_use]
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    async fn start_with(settings: Settings) -> Self {
        let folder = temporary_folder();
        let started = Instant::now();
        loop {
            let port = Port::free();
            match launch(&settings, port.number(), folder.path()).await {
                Ok(process) => {
                    return Self {
                        settings,
                        port,
                        process: Mutex::new(process),
                        folder,
                    };
                }
                // Another process took the port after it was found free.
                Err(log)
                    if log.contains("Address already in use")
                        && started.elapsed() < START_LIMIT => {}
                Err(log) => panic!("redis-server did not start; it wrote:\n{log}"),
            }
        }
    }

    /// The address on which the server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port()))
    }

    /// The TCP port. It stays the same over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://…`, with the password if there is one.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// Like [`url`](Self::url), with another address, such as a [`Proxy`](crate::Proxy)'s.
    #[must_use]
    pub fn url_at(&self, addr: SocketAddr) -> String {
        match &self.settings.password {
            Some(password) => format!("redis://:{password}@{addr}/"),
            None => format!("redis://{addr}/"),
        }
    }

    /// The path of the Unix socket.
    ///
    /// # Panics
    ///
    /// If the server was started without [`unix_socket`](RedisServerBuilder::unix_socket).
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        assert!(
            self.settings.unix_socket,
            "started without `unix_socket(true)`"
        );
        builder::socket_path(self.folder.path())
    }

    /// The folder in which the server runs, with its log and its data.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Everything that the server has written to its log, over all restarts.
    #[must_use]
    pub fn log(&self) -> String {
        read_log(self.folder.path())
    }

    /// The id of the process that runs, or ran last.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process().id()
    }

    /// SIGKILL, like a crash. Returns when the process is gone. Harmless if it already is.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// SIGTERM: an orderly shutdown (no snapshot is saved). Returns when the process is gone.
    ///
    /// A paused server is resumed first.
    pub async fn stop(&self) {
        {
            let mut process = self.process();
            process.resume();
            process.terminate();
        }
        eventually("redis-server ends after SIGTERM", async || {
            self.process().exit_status().is_some()
        })
        .await;
    }

    /// SIGSTOP: connections stay open, and nothing is answered any more.
    pub fn pause(&self) {
        self.process().pause();
    }

    /// SIGCONT, after [`pause`](Self::pause): the server now carries out what it was sent
    /// meanwhile.
    pub fn resume(&self) {
        self.process().resume();
    }

    /// Starts the server again with the same port, folder and settings. If it still runs, it is
    /// [stopped](Self::stop) first. Data survives only with
    /// [`appendonly`](RedisServerBuilder::appendonly).
    pub async fn restart(&self) {
        let running = self.process().exit_status().is_none();
        if running {
            self.stop().await;
        }
        let started = Instant::now();
        loop {
            match launch(&self.settings, self.port(), self.folder.path()).await {
                Ok(process) => {
                    *self.process() = process;
                    return;
                }
                // A process that took the port meanwhile may give it back.
                Err(log)
                    if log.contains("Address already in use")
                        && started.elapsed() < START_LIMIT =>
                {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(log) => panic!("redis-server did not start again; it wrote:\n{log}"),
            }
        }
    }

    /// Like [`restart`](Self::restart), but kills a server that still runs and removes its files:
    /// the server comes back without any data.
    pub async fn restart_empty(&self) {
        self.kill();
        for entry in fs::read_dir(self.folder.path()).expect("the folder can be listed") {
            let path = entry.expect("the folder can be listed").path();
            if path == log_path(self.folder.path()) {
                continue;
            }
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.unwrap_or_else(|error| panic!("cannot remove {path:?}: {error}"));
        }
        self.restart().await;
    }

    fn process(&self) -> MutexGuard<'_, OsProcess> {
        // A panic in here leaves nothing half done that a test could still need.
        self.process
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A connection for a test's own commands. It waits for each answer, however busy the machine is:
/// the redis crate's default is half a second.
///
/// # Panics
/// If the server can't be reached.
pub async fn patient_connection(url: &str) -> redis::aio::MultiplexedConnection {
    let patient = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let client = redis::Client::open(url).expect("a URL");
    let connection = client.get_multiplexed_async_connection_with_config(&patient);
    connection.await.expect("the server can be reached")
}

/// Starts one process. Returns when it answers; if it ends first, returns its log.
async fn launch(settings: &Settings, port: u16, folder: &Path) -> Result<OsProcess, String> {
    let earlier = read_log(folder).len();
    let mut log = fs::File::options()
        .create(true)
        .append(true)
        .open(log_path(folder))
        .expect("the log can be opened");
    writeln!(log, "--- redis-server on port {port}").expect("the log can be written");
    let mut process = OsProcess::spawn(
        Command::new("redis-server")
            .args(settings.arguments(port, folder, redis_version() >= (7, 0)))
            .envs(settings.environment.iter().cloned())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log can be shared"))
            .stderr(log),
    );
    let client = settings.client(port);
    let started = Instant::now();
    loop {
        if process.exit_status().is_some() {
            return Err(read_log(folder).split_off(earlier));
        }
        if questions::is_ready(client.clone(), process.id()).await {
            return Ok(process);
        }
        assert!(
            started.elapsed() < START_LIMIT,
            "redis-server did not answer within {START_LIMIT:?}; it wrote:\n{}",
            read_log(folder)
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("redis.log")
}

fn read_log(folder: &Path) -> String {
    match fs::read(log_path(folder)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => panic!("the log cannot be read: {error}"),
    }
}

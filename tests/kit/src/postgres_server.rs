//! A real PostgreSQL server for one test.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{ClientId, Clock, Listener, Store};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::OsProcess;
use crate::temporary_folder;
use crate::{Asks, Backend, StoreUnderTest};
use crate::{PATIENT, context};
use crate::{Port, eventually};

mod data;
mod standby;

pub use standby::postgres_has_standbys;

/// The folders of Debian and Homebrew with a folder for each version, if the programs are not in
/// the path.
const FOLDERS: [&str; 3] = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"];

/// The user of the clients, which may execute the functions and no more.
const APP: &str = "app";

/// A server in a folder of its own, on a free port. It ends with this value.
pub struct PostgresServer {
    // First: fields are dropped in order, and the process uses the others.
    process: Mutex<Option<OsProcess>>,
    port: Port,
    folder: TempDir,
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresServer").field(&self.port()).finish()
    }
}

/// The newest program of this name, or that in the folder `POSTGRES_PROGRAMS`.
fn path_of(name: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("POSTGRES_PROGRAMS") {
        let given = Path::new(&folder).join(name);
        // The pooler is no part of PostgreSQL.
        assert!(
            given.exists() || name == "pgbouncer",
            "there is no {}",
            given.display()
        );
        if given.exists() {
            return given;
        }
    }
    let of_version = |folder: &str| {
        let versions = fs::read_dir(folder).into_iter().flatten().flatten();
        versions
            .map(|version| version.path().join("bin").join(name))
            .collect::<Vec<_>>()
    };
    let mut paths: Vec<PathBuf> = FOLDERS.into_iter().flat_map(of_version).collect();
    paths.sort();
    // Debian's place for servers, which is not in everybody's path.
    paths.insert(0, Path::new("/usr/sbin").join(name));
    let there = paths.into_iter().rfind(|path| path.exists());
    there.unwrap_or_else(|| PathBuf::from(name))
}

/// The program, run by somebody other than root, which it refuses.
pub(crate) fn program(name: &str) -> Command {
    let path = path_of(name);
    if !Uid::effective().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(path);
    command
}

impl PostgresServer {
    /// A server with the migration applied, and a user who may do no more than clients need.
    pub async fn start() -> Self {
        let server = Self::bare().await;
        server.set_up().await;
        server
    }

    /// The same, perhaps with the identity of others: for tests of functions without a client.
    pub async fn start_alike() -> Self {
        let server = Self::with_data(temporary_folder(), data::make_alike).await;
        server.set_up().await;
        server
    }

    /// The same on a disk, for benchmarks.
    ///
    /// # Panics
    /// If there is no PostgreSQL on this machine.
    pub async fn on_disk() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = Self::in_folder(folder).await;
        server.set_up().await;
        server
    }

    /// The same in a folder within this one.
    ///
    /// # Panics
    /// If there is no PostgreSQL on this machine.
    pub async fn within(folder: &Path) -> Self {
        let folder = tempfile::tempdir_in(folder).expect("a temporary folder");
        let server = Self::in_folder(folder).await;
        server.set_up().await;
        server
    }

    async fn set_up(&self) {
        self.migrate().await;
        self.run(&format!(
            "GRANT USAGE ON SCHEMA lock_store TO {APP};
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO {APP}"
        ))
        .await;
    }

    /// A server without the migration.
    ///
    /// # Panics
    /// If there is no PostgreSQL on this machine.
    pub async fn bare() -> Self {
        Self::in_folder(temporary_folder()).await
    }

    async fn in_folder(folder: TempDir) -> Self {
        Self::with_data(folder, data::make).await
    }

    async fn with_data(folder: TempDir, make: impl FnOnce(&Path)) -> Self {
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open).expect("the folder is this user's");
        make(&folder.path().join("data"));
        let server = Self {
            port: Port::free(),
            process: Mutex::new(None),
            folder,
        };
        server.launch().await;
        server.run(&format!("CREATE ROLE {APP} LOGIN")).await;
        server
    }

    /// From now on it also speaks TLS, with this certificate and key in PEM.
    ///
    /// # Panics
    /// If it can't.
    pub async fn enable_tls(&self, certificate: &str, key: &str) {
        let data = self.folder.path().join("data");
        let owner = fs::metadata(&data).expect("the data").uid();
        for (name, pem) in [("server.crt", certificate), ("server.key", key)] {
            let path = data.join(name);
            fs::write(&path, pem).expect("the folder is this user's");
            // The server's user reads it, and nobody else may.
            chown(&path, Some(owner), None).expect("its owner");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
        }
        let session = self.session().await;
        for command in ["ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"] {
            session.simple_query(command).await.expect("good SQL");
        }
        let on = "SELECT count(*) FROM pg_settings WHERE name = 'ssl' AND setting = 'on'";
        eventually("it speaks TLS", async || self.number(on).await == 1).await;
    }

    /// From now on it lets in whom these lines of `pg_hba.conf` say, and the superuser.
    ///
    /// # Panics
    /// If it can't.
    pub async fn let_in(&self, lines: &str) {
        let path = self.folder.path().join("data/pg_hba.conf");
        let text = format!("host all postgres all trust\n{lines}\n");
        // It stays the file of the server's user.
        fs::write(path, text).expect("the folder is this user's");
        self.run("SELECT pg_reload_conf()").await;
    }

    /// One under test.
    pub async fn under_test() -> Backend {
        Backend::new(Self::start().await)
    }

    fn process(&self) -> MutexGuard<'_, Option<OsProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts it, and again if it ends at once: after a crash, processes of the one before may keep
    /// the port and the memory for a while.
    async fn launch(&self) {
        let limit = Duration::from_secs(30);
        let started = Instant::now();
        loop {
            self.spawn();
            let has_ended = || {
                let mut process = self.process();
                process
                    .as_mut()
                    .is_none_or(|process| process.exit_status().is_some())
            };
            while !has_ended() && started.elapsed() < limit {
                let answer = tokio::time::timeout(Duration::from_secs(2), self.try_connect());
                if let Ok(Some(_)) = answer.await {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(
                started.elapsed() < limit,
                "PostgreSQL did not start within {limit:?}; it wrote:\n{log}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn spawn(&self) {
        let log = fs::File::create(self.folder.path().join("log")).expect("a log");
        let mut command = program("postgres");
        command
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-p", &self.port().to_string()])
            .args([
                "-c",
                "listen_addresses=127.0.0.1,::1",
                "-c",
                "unix_socket_directories=",
            ])
            // As it is from 14 on.
            .args(["-c", "password_encryption=scram-sha-256"])
            .args(["-c", "max_connections=300", "-c", "shared_buffers=32MB"])
            // In its folder, which is removed, also when it was killed.
            .args(["-c", "dynamic_shared_memory_type=mmap"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        *self.process() = Some(OsProcess::spawn(&mut command));
    }

    async fn try_connect(&self) -> Option<Client> {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.ok()?;
        tokio::spawn(connection);
        client.simple_query("SELECT 1").await.ok()?;
        Some(client)
    }

    /// The URL of the superuser.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port())
    }

    /// The URL of the user with the least rights.
    #[must_use]
    pub fn app_url(&self) -> String {
        format!("postgres://{APP}@127.0.0.1:{}/postgres", self.port())
    }

    /// The same with another address, such as a [`Proxy`](crate::Proxy)'s.
    #[must_use]
    pub fn app_url_at(&self, address: SocketAddr) -> String {
        format!("postgres://{APP}@{address}/postgres")
    }

    /// The TCP port. It stays the same over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// A session of the superuser.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn session(&self) -> Client {
        self.try_connect().await.expect("the server answers")
    }

    /// Carries out SQL as the superuser.
    ///
    /// # Panics
    /// If it fails.
    pub async fn run(&self, sql: &str) {
        let session = self.session().await;
        session.batch_execute(sql).await.expect("good SQL");
    }

    /// The number that a query gives.
    ///
    /// # Panics
    /// If it gives none.
    pub async fn number(&self, query: &str) -> usize {
        let row = self.session().await.query_one(query, &[]).await;
        let number: i64 = row.expect("a row").get(0);
        usize::try_from(number).expect("a number from zero")
    }

    /// Applies the migration, or that in the file named by `LOCK_MIGRATION`: `bash tests/long/run
    /// sql` sets it, to have it broken.
    ///
    /// # Panics
    /// If that file can't be read.
    pub async fn migrate(&self) {
        let broken = std::env::var_os("LOCK_MIGRATION").map(|path| {
            let text = fs::read_to_string(&path);
            text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        });
        let text = broken.as_deref().unwrap_or(lock_store_postgres::MIGRATION);
        self.run(text).await;
    }

    /// The server's processes. The first starts the others.
    fn processes(&self) -> Vec<Pid> {
        let process = self.process();
        let id = process.as_ref().expect("the server runs").id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.expect("the list of a process' children");
        let children = children.split_whitespace();
        let ids = children.map(|child| child.parse::<i32>().expect("a process id"));
        let first = i32::try_from(id).expect("a process id");
        std::iter::once(first)
            .chain(ids)
            .map(Pid::from_raw)
            .collect()
    }

    /// SIGSTOP for all of its processes.
    pub fn pause(&self) {
        // The first one first, so that no other is started meanwhile.
        self.process().as_mut().expect("the server runs").pause();
        for process in self.processes().into_iter().skip(1) {
            // It may have ended by itself.
            let _ = kill(process, Signal::SIGSTOP);
        }
    }

    /// SIGCONT for all of its processes.
    pub fn resume(&self) {
        for process in self.processes().into_iter().rev() {
            let _ = kill(process, Signal::SIGCONT);
        }
    }

    /// SIGKILL for all of its processes.
    pub fn kill(&self) {
        self.pause();
        for process in self.processes().into_iter().skip(1) {
            let _ = kill(process, Signal::SIGKILL);
        }
        if let Some(mut process) = self.process().take() {
            process.kill();
        }
    }

    /// Ends it in good order: what is under way is rolled back.
    pub async fn stop(&self) {
        let first = self.processes().first().copied().expect("the server runs");
        kill(first, Signal::SIGINT).expect("the server runs");
        eventually("the server ends", async || self.has_ended()).await;
    }

    /// Whether its process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match &mut *self.process() {
            Some(process) => process.exit_status().is_some(),
            None => true,
        }
    }

    /// Ends all connections of clients.
    pub async fn end_connections(&self) {
        self.run(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{APP}'"
        ))
        .await;
    }

    /// Starts it again at the same address.
    pub async fn restart(&self) {
        self.launch().await;
    }
}

/// It ends by itself, so that it gives back its shared memory; or it is killed.
impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        self.resume();
        if let Some(first) = self.processes().first() {
            let _ = kill(*first, Signal::SIGQUIT);
        }
        for _ in 0..500 {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }
}

const EMPTY: &str = "TRUNCATE lock_store.hold, lock_store.share, lock_store.place,
    lock_store.latch, lock_store.latch_place, lock_store.latch_call, lock_store.rate,
    lock_store.pass_log";

impl StoreUnderTest for PostgresServer {
    fn subscribes_later(&self) -> bool {
        true
    }

    fn builder(&self) -> LockClientBuilder {
        // These tests are not about how soon clients report that a machine is busy.
        LockClient::builder()
            .url(self.app_url())
            .command_timeout(Duration::from_secs(5))
            .connect_timeout(Duration::from_secs(10))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let mut context = context("lock", id, listener, clock);
        context.timeouts = PATIENT;
        let access = lock_store::Access::default();
        lock_store_postgres::open(&self.app_url(), context, &access).expect("a good URL")
    }

    fn patience(&self) -> u32 {
        2
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(self.number(
            "SELECT (SELECT count(*) FROM lock_store.hold
                     WHERE owner IS NOT NULL AND ends > clock_timestamp())
                  + (SELECT count(*) FROM lock_store.share WHERE ends > clock_timestamp())
                  + (SELECT count(*) FROM lock_store.place)
                  + (SELECT count(*) FROM lock_store.latch WHERE ends > clock_timestamp())
                  + (SELECT count(*) FROM lock_store.latch_place WHERE ends > clock_timestamp())
                  + (SELECT count(*) FROM lock_store.rate
                     WHERE (at + debt) / 1e9 > date_part('epoch', clock_timestamp()))
                  + (SELECT count(*) FROM lock_store.pass_log
                     WHERE ends / 1e6 > date_part('epoch', clock_timestamp()))",
        ))
    }

    /// The number of clients that have something here. A client that closes gives up its places.
    fn channels(&self) -> Asks<'_, usize> {
        Box::pin(self.number(
            "SELECT count(*) FROM (
                SELECT client FROM lock_store.place
                UNION SELECT substr(owner, 1, 16) FROM lock_store.hold
                    WHERE owner IS NOT NULL AND ends > clock_timestamp()
                UNION SELECT substr(owner, 1, 16) FROM lock_store.share
                    WHERE ends > clock_timestamp()
                UNION SELECT substr(owner, 1, 16) FROM lock_store.latch_place
             ) AS waiting",
        ))
    }

    fn pause(&self) -> bool {
        Self::pause(self);
        true
    }

    fn resume(&self) {
        Self::resume(self);
    }

    fn kill(&self) -> bool {
        Self::kill(self);
        true
    }

    fn restart(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(Self::restart(self))
    }

    fn is_emptied(&self) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        Box::pin(async {
            let Some(session) = self.try_connect().await else {
                return false;
            };
            are_clients_gone(&session).await && session.batch_execute(EMPTY).await.is_ok()
        })
    }
}

/// Whether no client has a session any more, or has none in a moment. One that is not awaited may
/// still undo what it has dropped, for half a minute and by the same names as the next test.
pub(crate) async fn are_clients_gone(session: &Client) -> bool {
    let clients = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
    let began = Instant::now();
    loop {
        let row = session.query_one(clients, &[]).await;
        if row.is_ok_and(|row| row.get::<_, i64>(0) == 0) {
            return true;
        }
        if began.elapsed() > Duration::from_millis(250) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

//! A real pgbouncer in front of a [`PostgresServer`].

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::OsProcess;
use crate::postgres_server::{PostgresServer, program};
use crate::{Port, eventually};

/// A pooler of five sessions in transaction mode. It ends with this value.
#[derive(Debug)]
pub struct PgBouncer {
    // First: fields are dropped in order, and the process uses the others.
    _process: OsProcess,
    port: Port,
    _folder: TempDir,
}

impl PgBouncer {
    /// How many sessions of the server it uses.
    pub const SESSIONS: usize = 5;

    /// In front of this server.
    ///
    /// # Panics
    /// If there is no pgbouncer on this machine.
    pub async fn start(server: &PostgresServer) -> Self {
        Self::start_with(server, "").await
    }

    /// In front of this server, with these settings as well.
    ///
    /// # Panics
    /// If there is no pgbouncer on this machine.
    pub async fn start_with(server: &PostgresServer, settings_too: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open).expect("the folder is this user's");
        let port = Port::free();
        let settings = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} dbname=postgres user=app\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\nmax_client_conn = 200\n\
             default_pool_size = {}\n{settings_too}\n",
            server.port(),
            port.number(),
            Self::SESSIONS
        );
        fs::write(&settings, text).expect("the settings");
        let readable = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&settings, readable).expect("the file is this user's");
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let mut command = program("pgbouncer");
        command
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let bouncer = Self {
            port,
            _process: OsProcess::spawn(&mut command),
            _folder: folder,
        };
        eventually("pgbouncer answers", async || {
            let Ok((session, driver)) = tokio_postgres::connect(&bouncer.url(), NoTls).await else {
                return false;
            };
            tokio::spawn(driver);
            session.simple_query("SELECT 1").await.is_ok()
        })
        .await;
        bouncer
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// The URL of the user with the least rights, through the pooler.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://app@{}/postgres", self.address())
    }
}

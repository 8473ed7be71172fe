//! Standbys of a [`PostgresServer`].

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;

use super::{PostgresServer, program};
use crate::temporary_folder;
use crate::{Port, eventually};

/// Whether servers can be copied: what packages bring of another version may lack the program.
/// Says so if it does.
#[must_use]
pub fn postgres_has_standbys() -> bool {
    let given = std::env::var_os("POSTGRES_PROGRAMS");
    let has = given.is_none_or(|folder| Path::new(&folder).join("pg_basebackup").exists());
    if !has {
        eprintln!("skipped: there is no pg_basebackup of this version");
    }
    has
}

impl PostgresServer {
    /// A copy of this server, which follows it from now on. With `synchronous`, each commit waits
    /// for it, and clients sweep no more.
    ///
    /// # Panics
    /// If it can't be copied.
    pub async fn standby(&self, synchronous: bool) -> Self {
        let folder = temporary_folder();
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open).expect("the folder is this user's");
        let copied = program("pg_basebackup")
            .args(["-h", "127.0.0.1", "-U", "postgres", "--no-sync"])
            .args(["--write-recovery-conf", "--checkpoint=fast"])
            .args(["-p", &self.port().to_string(), "-D"])
            .arg(folder.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .expect("pg_basebackup is installed");
        assert!(copied.success(), "pg_basebackup: {copied}");
        let standby = Self {
            port: Port::free(),
            process: Mutex::new(None),
            folder,
        };
        standby.launch().await;
        if synchronous {
            let session = self.session().await;
            // The commit of a sweep would wait beside that of a test, or in front of it.
            self.run("UPDATE lock_store.meta SET swept = 'infinity'")
                .await;
            // Not in a transaction, as `ALTER SYSTEM` wants it.
            for command in [
                "ALTER SYSTEM SET synchronous_standby_names = '*'",
                "SELECT pg_reload_conf()",
            ] {
                session.simple_query(command).await.expect("good SQL");
            }
            eventually("commits wait for the standby", async || {
                let all = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
                self.number(all).await == 1
            })
            .await;
        }
        standby
    }

    /// A standby takes over.
    pub async fn promote(&self) {
        self.run("SELECT pg_promote()").await;
        eventually("it takes writes", async || {
            let standby = "SELECT count(*) FROM (SELECT 1 WHERE pg_is_in_recovery()) AS it";
            self.number(standby).await == 0
        })
        .await;
    }
}

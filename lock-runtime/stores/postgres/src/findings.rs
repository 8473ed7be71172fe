//! What a server says about itself, and its settings that endanger locks.

use lock_store::{Finding, Instant, Role, ServerHealth, StoreError, StoreErrorKind};

use crate::errors::of_postgres;
use crate::listen::Hearing;
use crate::rows::{Read, Values};
use crate::statement::Statement;
use crate::store::PostgresStore;

const QUESTION: &str = "SELECT
    current_setting('server_version') AS version,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS pages,
    current_setting('synchronous_commit') AS commits,
    current_setting('synchronous_standby_names') AS standbys,
    (SELECT count(*) FROM pg_stat_replication) AS replicas,
    pg_is_in_recovery() AS is_standby";

impl PostgresStore {
    async fn ask_server(&self, by: Instant) -> Result<Vec<ServerHealth>, StoreError> {
        let clock = &self.pool.clock;
        let connection = self.pool.get(by).await?;
        let sent = clock.now();
        let statement = Statement::new(QUESTION, Vec::new());
        let rows = clock.by(by, connection.run(&statement, sent, self.late));
        let Some(rows) = rows.await else {
            // Its session goes on with what it has, perhaps for as long as a standby is away.
            self.pool.doubt(&connection);
            return Err(self.silence());
        };
        let failed = |error| of_postgres(&error, self.server());
        let rows = rows.map_err(failed)?;
        let row = rows.first().map(Values);
        let row = row.ok_or_else(|| self.error(StoreErrorKind::Refused, "it says nothing"))?;
        let now = clock.now();
        let mut health = ServerHealth::new(self.server().to_owned());
        health.round_trip = now - sent;
        describe(&row, &mut health).map_err(failed)?;
        let (since, reconnects) = self.pool.connected();
        health.connected_for = now - since.unwrap_or(connection.since());
        health.reconnects = reconnects;
        Ok(vec![health])
    }

    pub(crate) async fn collect_findings(
        &self,
        by: Instant,
    ) -> Result<Vec<ServerHealth>, StoreError> {
        let mut servers = self.ask_server(by).await?;
        if let Some(server) = servers.first_mut() {
            server.findings.extend(self.deafness(by).await);
        }
        Ok(servers)
    }

    /// Logs all findings but one, which is logged where it is found.
    pub(crate) async fn log_all(&self, by: Instant) -> bool {
        let servers = self.ask_server(by).await;
        servers.iter().flatten().for_each(ServerHealth::log);
        servers.is_ok()
    }

    /// Waits until it is known.
    async fn deafness(&self, by: Instant) -> Option<Finding> {
        let mut hearing = self.hearing.clone();
        let known = hearing.wait_for(|hearing| *hearing != Hearing::Unknown);
        let known = self.pool.clock.by(by, known).await?.ok()?;
        match &*known {
            Hearing::Deaf(text) => Some(Finding::other(text.to_string())),
            _ => None,
        }
    }
}

fn describe(row: &Values<'_>, health: &mut ServerHealth) -> Read<()> {
    health.version = row.get("version")?;
    health.role = match row.get("is_standby")? {
        true => Role::Replica,
        false => Role::Master,
    };
    let replicas: i64 = row.get("replicas")?;
    health.replicas = u32::try_from(replicas).ok();
    let mut finds = |text: &str| health.findings.push(Finding::other(text.to_owned()));
    if row.get::<&str>("fsync")? == "off" || row.get::<&str>("pages")? == "off" {
        finds(
            "`fsync` or `full_page_writes` is off, so a crash of its machine can free or damage \
             locks that are held; set both to `on`",
        );
    }
    let commits: &str = row.get("commits")?;
    if commits == "off" {
        finds(
            "`synchronous_commit` is `off`, so a crash frees locks that were just acquired; set \
             it to `on`, for this user at least: ALTER ROLE … SET synchronous_commit = on",
        );
    }
    let standbys: &str = row.get("standbys")?;
    if replicas > 0 && (standbys.is_empty() || commits == "local") {
        finds(
            "it has standbys and does not wait for them, so a standby that takes over may not know \
             locks that are held; set `synchronous_standby_names` (and `synchronous_commit = on`), \
             or rely on `lock_check` and fencing tokens",
        );
    }
    Ok(())
}

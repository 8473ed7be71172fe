//! PostgreSQL under test, with locks in ShedLock's table.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{Capabilities, ClientId, Clock, Layout, Listener, Store};

use crate::PostgresServer;
use crate::postgres_server::are_clients_gone;
use crate::{Asks, Backend, StoreUnderTest};
use crate::{PATIENT, context};

/// As ShedLock's documentation has it, but for the length of a name.
const TABLE: &str = "CREATE TABLE shedlock (name VARCHAR(1024) PRIMARY KEY, \
     lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, \
     locked_by VARCHAR(255) NOT NULL); GRANT SELECT, INSERT, UPDATE ON shedlock TO app";

/// One server with the table, and clients who may do no more than write to it. What needs a queue,
/// tokens, shares or messages is left out.
#[derive(Debug)]
pub struct ShedlockTable(PostgresServer);

impl ShedlockTable {
    /// A new server.
    pub async fn start() -> Backend {
        Backend::new(Self(Self::server().await))
    }

    /// The same, without a way to its locks.
    pub async fn server() -> PostgresServer {
        let server = PostgresServer::bare().await;
        server.run(TABLE).await;
        server
    }

    /// What the tests go by.
    #[must_use]
    pub fn capabilities() -> Capabilities {
        Capabilities::none("the layout")
    }
}

impl StoreUnderTest for ShedlockTable {
    fn builder(&self) -> LockClientBuilder {
        LockClient::builder()
            .url(self.0.app_url())
            .layout(Layout::ShedLock)
            .namespace("lock")
            .command_timeout(Duration::from_secs(5))
            .connect_timeout(Duration::from_secs(10))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let mut context = context("lock", id, listener, clock);
        context.timeouts = PATIENT;
        context.layout = Layout::ShedLock;
        let access = lock_store::Access::default();
        lock_store_postgres::open(&self.0.app_url(), context, &access).expect("a good URL")
    }

    fn patience(&self) -> u32 {
        2
    }

    /// A row stays when its lock has ended.
    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(self.0.number(
            "SELECT count(*) FROM shedlock WHERE lock_until > timezone('utc', clock_timestamp())",
        ))
    }

    crate::server_faults::server_faults!(0);

    fn is_emptied(&self) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        Box::pin(async {
            let session = self.0.session().await;
            are_clients_gone(&session).await
                && session.batch_execute("TRUNCATE shedlock").await.is_ok()
        })
    }
}

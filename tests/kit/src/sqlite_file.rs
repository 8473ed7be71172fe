//! A SQLite database of a test's own.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{ClientId, Clock, Listener, Store};
use nix::fcntl::{Flock, FlockArg};
use nix::time::{ClockId, clock_gettime};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::context;
use crate::temporary_folder;
use crate::{Asks, Backend, StoreUnderTest};

/// A database in a folder of its own, which is removed with this value.
pub struct SqliteFile {
    folder: TempDir,
    path: PathBuf,
}

impl fmt::Debug for SqliteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteFile").field(&self.path).finish()
    }
}

impl Default for SqliteFile {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreUnderTest for SqliteFile {
    fn builder(&self) -> LockClientBuilder {
        // A disk is slow now and then, and these tests are not about how soon clients report that.
        LockClient::builder()
            .url(self.url())
            .command_timeout(Duration::from_secs(5))
            .connect_timeout(Duration::from_secs(10))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let context = context("lock", id, listener, clock);
        lock_store_sqlite::open(&self.url(), context).expect("a good URL")
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async { Self::leftovers(self) })
    }

    /// The number of clients that have something here. A client that closes gives it up.
    fn channels(&self) -> Asks<'_, usize> {
        Box::pin(async { self.clients_present() })
    }
}

impl SqliteFile {
    /// One under test.
    pub async fn start() -> Backend {
        Backend::new(Self::new())
    }

    /// A file that does not exist yet.
    ///
    /// # Panics
    /// If there can be no temporary folder.
    #[must_use]
    pub fn new() -> Self {
        let folder = temporary_folder();
        let path = folder.path().join("locks.db");
        Self { folder, path }
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that it is in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The URL for a client.
    #[must_use]
    pub fn url(&self) -> String {
        format!("sqlite://{}", self.path.display())
    }

    /// A connection of the test's own.
    ///
    /// # Panics
    /// If there can be none.
    #[must_use]
    pub fn connection(&self) -> Connection {
        let connection = Connection::open(&self.path).expect("the database can be opened");
        connection
            .busy_timeout(std::time::Duration::from_secs(5))
            .expect("a time limit");
        connection
    }

    /// The number that a query gives.
    ///
    /// # Panics
    /// If it gives none.
    #[must_use]
    pub fn number(&self, query: &str) -> usize {
        let number: i64 = self
            .connection()
            .query_row(query, (), |row| row.get(0))
            .expect("a number");
        usize::try_from(number).expect("a number from zero")
    }

    /// The text that a query gives.
    ///
    /// # Panics
    /// If it gives none.
    #[must_use]
    pub fn text(&self, query: &str) -> String {
        self.connection()
            .query_row(query, (), |row| row.get(0))
            .expect("a text")
    }

    /// True if a client writes now: it has begun a transaction and not ended it.
    ///
    /// # Panics
    /// If the log can't be opened.
    #[must_use]
    pub fn is_written_to(&self) -> bool {
        let log = File::open(self.folder().join("locks.db-wal")).expect("there is a log");
        Flock::lock(log, FlockArg::LockSharedNonblock).is_err()
    }

    /// The number of holds, places, latches, buckets and logs that have not ended.
    #[must_use]
    pub fn leftovers(&self) -> usize {
        let now = boot_nanos();
        self.number(&format!(
            "SELECT (SELECT count(*) FROM hold WHERE ends > {now})
                  + (SELECT count(*) FROM place)
                  + (SELECT count(*) FROM latch WHERE ends > {now})
                  + (SELECT count(*) FROM latch_place WHERE ends > {now})
                  + (SELECT count(*) FROM rate WHERE ends > {now})
                  + (SELECT count(*) FROM pass_log WHERE ends > {now})"
        ))
    }

    /// The number of clients that have a hold, or a place somewhere, and so hear of it.
    #[must_use]
    pub fn clients_present(&self) -> usize {
        let now = boot_nanos();
        self.number(&format!(
            "SELECT count(*) FROM (
                SELECT session FROM hold WHERE session IS NOT NULL AND ends > {now}
                UNION SELECT session FROM place
                UNION SELECT session FROM latch_place
             )"
        ))
    }
}

/// The machine's boot time.
fn boot_nanos() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("a clock of the boot");
    let now = std::time::Duration::from(now).as_nanos();
    i64::try_from(now).expect("less than 292 years")
}

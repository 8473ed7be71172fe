//! A connection to the database, and what happened at its opening.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lock_store::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};

use crate::errors::{is_busy, of_sqlite};
use crate::schema::{APPLICATION, TABLES, VERSION};

/// One connection of one thread.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// The write-ahead log.
    log: Option<File>,
    /// The file itself: device and number.
    file: Option<(u64, u64)>,
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// More statements than there are.
const STATEMENTS: usize = 128;

/// The pauses of one attempt to get the write lock. Together about 50 ms: then the thread looks
/// whether anybody still waits.
const PAUSES: i32 = 120;

/// So many attempts of a client that starts or ends, about a second.
const ATTEMPTS: u32 = 20;

/// Transactions are short. SQLite's own pauses are up to 100 ms long.
fn pause(count: i32) -> bool {
    if count >= PAUSES {
        return false;
    }
    let micros = 50 + 10 * u64::try_from(count).unwrap_or(0);
    std::thread::sleep(Duration::from_micros(micros.min(500)));
    true
}

impl Database {
    /// Opens the database, and makes the tables if the file is new.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error: rusqlite::Error| of_sqlite(&error, path);
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_handler(Some(pause)).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let database = Self {
            connection,
            path: path.to_owned(),
            log: None,
            file: file_at(path),
        };
        let is_new = database.is_new()?;
        if !is_new {
            database.check_version()?;
        }
        database.prepare().map_err(failed)?;
        if is_new {
            database.begin_patiently().map_err(failed)?;
            database.make_tables()?;
            database.commit().map_err(failed)?;
        }
        Ok(database)
    }

    fn number(&self, pragma: &str) -> rusqlite::Result<i64> {
        self.connection.query_row(pragma, (), |row| row.get(0))
    }

    /// True if the file is empty. An error if it belongs to another program.
    fn is_new(&self) -> Result<bool, StoreError> {
        let failed = |error: rusqlite::Error| of_sqlite(&error, &self.path);
        let application = self.number("PRAGMA application_id").map_err(failed)?;
        if application == APPLICATION {
            return Ok(false);
        }
        let tables = self.number("SELECT count(*) FROM sqlite_master");
        if application == 0 && tables.map_err(failed)? == 0 {
            return Ok(true);
        }
        Err(self.misconfigured("is the database of another program; name a file of its own"))
    }

    fn check_version(&self) -> Result<(), StoreError> {
        let version = self.number("PRAGMA user_version");
        let version = version.map_err(|error| of_sqlite(&error, &self.path))?;
        if version == VERSION {
            return Ok(());
        }
        Err(self.misconfigured(&format!(
            "has tables of version {version}, and this build of lock-runtime knows version \
             {VERSION}; use one version in all processes, or name another file"
        )))
    }

    fn misconfigured(&self, what: &str) -> StoreError {
        let path = self.path.display();
        StoreError::new(StoreErrorKind::Misconfigured, format!("{path} {what}"))
    }

    /// A committed transaction outlives the process. What a crash of the machine may lose at this
    /// setting are holds, which end with the machine, and tokens: see [`Self::sync`].
    fn prepare(&self) -> rusqlite::Result<()> {
        let mut tries = 0;
        loop {
            let mode =
                self.connection
                    .pragma_update_and_check(None, "journal_mode", "WAL", |row| {
                        row.get::<_, String>(0)
                    });
            match mode {
                // Another process is at it. SQLite does not always ask `pause` here.
                Err(error) if is_busy(&error) && tries < PAUSES => _ = pause(tries),
                other => break drop(other?),
            }
            tries += 1;
        }
        self.connection.pragma_update(None, "synchronous", "NORMAL")
    }

    fn make_tables(&self) -> Result<(), StoreError> {
        // Another process may have made them meanwhile.
        if !self.is_new()? {
            return self.check_version();
        }
        let make = || {
            self.connection.execute_batch(TABLES)?;
            self.connection
                .pragma_update(None, "application_id", APPLICATION)?;
            self.connection.pragma_update(None, "user_version", VERSION)
        };
        make().map_err(|error| of_sqlite(&error, &self.path))
    }

    /// True if the path leads to another file, or to none: somebody has deleted or replaced it.
    /// Whoever opens the path now does not see what is written here.
    pub(crate) fn is_replaced(&self) -> bool {
        file_at(&self.path) != self.file
    }

    /// Begins a transaction that may write. Waits a moment for others.
    pub(crate) fn begin(&self) -> rusqlite::Result<()> {
        self.run("BEGIN IMMEDIATE")
    }

    /// The same for a client that starts: it waits longer.
    pub(crate) fn begin_patiently(&self) -> rusqlite::Result<()> {
        for _ in 0..ATTEMPTS {
            match self.begin() {
                Err(error) if is_busy(&error) => {}
                other => return other,
            }
        }
        self.begin()
    }

    pub(crate) fn commit(&self) -> rusqlite::Result<()> {
        self.run("COMMIT")
    }

    /// Undoes the transaction, unless SQLite has done so already.
    pub(crate) fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            let _ = self.run("ROLLBACK");
        }
    }

    fn run(&self, command: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(command)?.execute(())?;
        Ok(())
    }

    /// Puts everything that was committed on the disk, so that it outlives a crash of the machine.
    pub(crate) fn sync(&mut self) -> std::io::Result<()> {
        let log = match self.log.take() {
            Some(log) => log,
            None => {
                let mut path = self.path.as_os_str().to_owned();
                path.push("-wal");
                // SQLite has no locks on this file that its closing could end. The file stays as
                // long as there is a connection.
                File::open(path)?
            }
        };
        log.sync_data()?;
        self.log = Some(log);
        Ok(())
    }
}

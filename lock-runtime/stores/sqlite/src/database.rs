//! A connection to the database, and what happened at its opening.

use std::path::{Path, PathBuf};

use lock_store::StoreError;
use rusqlite::{Connection, OpenFlags};

use crate::database_locks::is_taken;
use crate::errors::{busy, is_busy, not_writable, of_io, of_sqlite, replaced};
use crate::files::{self, Files, FoundFiles, NotBegun, PAUSES, Writing, pause};
use crate::schema;

/// One connection of one thread. It is closed before its files are let go.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    /// As SQLite names it: the file itself, without links.
    pub(crate) path: PathBuf,
    files: Files,
    /// Between two transactions.
    found: Option<FoundFiles>,
    /// During a transaction.
    writing: Option<Writing>,
    /// SQLite was seen to write to these files. It opens no others until it is closed.
    is_proved: bool,
}

/// More statements than there are.
const STATEMENTS: usize = 128;

/// At most this many attempts of a client that starts or ends, about a second.
const ATTEMPTS: u32 = 20;

/// After a larger transaction, the log is cut off to this size, in bytes.
const LOG_SIZE: u32 = 8 << 20;

/// A process that reads the index ends SQLite's locks there, also in the moment in which a
/// transaction begins.
const PROOFS: u32 = 5;

fn not_begun(why: NotBegun, path: &Path) -> StoreError {
    match why {
        NotBegun::Busy => busy(path),
        NotBegun::Replaced => replaced(path),
        NotBegun::Failed(error) => error,
    }
}

/// Repeats what others keep from it.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, NotBegun>) -> Result<T, NotBegun> {
    for _ in 0..ATTEMPTS {
        match attempt() {
            Err(NotBegun::Busy) => {}
            other => return other,
        }
    }
    attempt()
}

impl Database {
    /// Opens the database, and makes the tables if the file is new.
    pub(crate) fn open(named: &Path) -> Result<Self, StoreError> {
        let nobody_writes = patiently(|| files::before_opening(named));
        let nobody_writes = nobody_writes.map_err(|stopped| not_begun(stopped, named))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error: rusqlite::Error| of_sqlite(&error, named);
        let connection = Connection::open_with_flags(named, flags).map_err(failed)?;
        // SQLite opens what can't be written as well.
        if connection.is_readonly("main").map_err(failed)? {
            return Err(not_writable(named));
        }
        connection.busy_handler(Some(pause)).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let path = connection.path().map_or(named, Path::new).to_owned();
        let is_ours = schema::is_there(&connection, &path)?;
        prepare(&connection).map_err(failed)?;
        let files = Files::of(named, &path).map_err(|error| match is_taken(&error) {
            true => busy(named),
            false => of_io(&error, named),
        })?;
        drop(nobody_writes);
        let mut database = Self {
            connection,
            path,
            files,
            found: None,
            writing: None,
            is_proved: false,
        };
        if !is_ours {
            database.make_tables()?;
        }
        Ok(database)
    }

    fn make_tables(&mut self) -> Result<(), StoreError> {
        self.begin_patiently()?;
        // Another process may have made them meanwhile.
        let made = match schema::is_there(&self.connection, &self.path) {
            Ok(false) => schema::make(&self.connection).map_err(|error| self.failed(&error)),
            other => other.map(drop),
        };
        let made = made.and_then(|()| self.commit().map_err(|error| self.failed(&error)));
        if made.is_err() {
            self.roll_back();
        }
        made
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        of_sqlite(error, &self.path)
    }

    /// See [`Files::are_replaced`].
    pub(crate) fn is_replaced(&self) -> bool {
        self.files.are_replaced()
    }

    /// Begins a transaction that may write, in the files that are there. Waits a moment for others.
    /// The number of the last change, by whomever.
    pub(crate) fn begin(&mut self) -> Result<u32, NotBegun> {
        let writing = self.files.lock(self.found.take())?;
        for _ in 0..PROOFS {
            // Others of ours do not write now.
            let change = self.files.fit(&writing)?;
            match self.run("BEGIN IMMEDIATE") {
                Ok(()) => {}
                Err(error) if is_busy(&error) => return Err(NotBegun::Busy),
                Err(error) if change.is_some() => {
                    return Err(NotBegun::Failed(self.failed(&error)));
                }
                // The log was cut off.
                Err(_) => continue,
            }
            if let Some(change) = change
                && (self.is_proved || self.files.are_written())
            {
                self.is_proved = true;
                self.writing = Some(writing);
                return Ok(change);
            }
            self.roll_back();
        }
        Err(self.files.reset())
    }

    /// [`begin`](Self::begin) for a client that starts or ends: it waits longer.
    pub(crate) fn begin_patiently(&mut self) -> Result<(), StoreError> {
        let begun = patiently(|| self.begin());
        begun
            .map(drop)
            .map_err(|stopped| not_begun(stopped, &self.path))
    }

    /// The names of the files are looked up in the next transaction.
    pub(crate) fn look_up(&mut self) {
        self.found = None;
    }

    /// SQLite has put the log into the database if it had become long: nobody else writes
    /// meanwhile, so that the next transaction begins it anew.
    pub(crate) fn commit(&mut self) -> rusqlite::Result<()> {
        self.run("COMMIT")?;
        self.found = self.writing.take().and_then(Writing::end);
        Ok(())
    }

    /// Puts everything that was committed on the disk, so that it outlives a crash of the machine.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        match &self.found {
            Some(found) => found.log.sync_data(),
            None => Err(std::io::Error::other("its log can't be reached")),
        }
    }

    /// Undoes the transaction, unless SQLite has done so already.
    pub(crate) fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.run("ROLLBACK");
        }
        self.writing = None;
    }

    fn run(&self, command: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(command)?.execute(())?;
        Ok(())
    }

    /// Lets go of the files first: the last one that closes them tidies up.
    pub(crate) fn close(self) {
        let Self {
            connection, files, ..
        } = self;
        drop(files);
        drop(connection);
    }
}

/// A committed transaction outlives the process. What a crash of the machine may lose at this
/// setting are holds, which end with the machine, and tokens, for which the log is put on the disk.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    let mut tries = 0;
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            // Another program is at it. SQLite does not always ask `pause` here.
            Err(error) if is_busy(&error) && tries < PAUSES => _ = pause(tries),
            other => break drop(other?),
        }
        tries += 1;
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_SIZE, |_| Ok(()))?;
    // SQLite makes the index when it reads.
    connection.query_row("SELECT count(*) FROM sqlite_master", (), |_| Ok(()))
}

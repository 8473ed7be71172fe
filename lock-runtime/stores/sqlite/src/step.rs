//! [`Step`]: what one transaction sees of the machine and the other clients, and what follows from
//! it.

use std::collections::HashMap;

use lock_store::Owner;
use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use crate::client_folder::{Folder, Process};
use crate::mail::{Mail, News};

/// Another client.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    pub(crate) file: String,
    pub(crate) process: Process,
}

/// A transaction.
#[derive(Debug)]
pub(crate) struct Step<'t> {
    pub(crate) rows: &'t Connection,
    /// Boot time.
    pub(crate) now: i64,
    /// The store's clock: microseconds since 1970, without jumps.
    pub(crate) micros: u64,
    /// This client.
    pub(crate) session: i64,
    folder: &'t Folder,
    /// The other clients, `None` for those that are over.
    others: HashMap<i64, Option<Other>>,
    /// Locks that may be free since a client is over.
    pub(crate) freed: Vec<String>,
    pub(crate) after: After,
}

/// What is to be done when the transaction is committed.
#[derive(Debug, Default)]
pub(crate) struct After {
    pub(crate) mails: Vec<Mail>,
    /// The files of clients that are over and have no rows any more.
    pub(crate) ended_files: Vec<String>,
    /// Places of this client wait for these clients.
    pub(crate) awaited: Vec<(i64, Other)>,
    /// New tokens must not be lost.
    pub(crate) minted: bool,
}

impl<'t> Step<'t> {
    pub(crate) fn new(
        rows: &'t Connection,
        folder: &'t Folder,
        session: i64,
        now: i64,
        micros: u64,
    ) -> Self {
        Self {
            rows,
            now,
            micros,
            session,
            folder,
            others: HashMap::new(),
            freed: Vec::new(),
            after: After::default(),
        }
    }

    /// Carries out a statement that changes rows.
    pub(crate) fn execute(&self, sql: &str, with: impl Params) -> rusqlite::Result<()> {
        self.rows.prepare_cached(sql)?.execute(with).map(drop)
    }

    pub(crate) fn exists(&self, sql: &str, with: impl Params) -> rusqlite::Result<bool> {
        self.rows.prepare_cached(sql)?.exists(with)
    }

    /// The first row, if there is one.
    pub(crate) fn find<T>(
        &self,
        sql: &str,
        with: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let found = self.rows.prepare_cached(sql)?.query_row(with, read);
        found.optional()
    }

    /// All rows.
    pub(crate) fn list<T>(
        &self,
        sql: &str,
        with: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.rows.prepare_cached(sql)?;
        statement.query_map(with, read)?.collect()
    }

    /// True unless the client's process has ended. Then its rows are deleted.
    pub(crate) fn check_alive(&mut self, session: i64) -> rusqlite::Result<bool> {
        if session == self.session {
            return Ok(true);
        }
        if let Some(other) = self.others.get(&session) {
            return Ok(other.is_some());
        }
        let sql = "SELECT file, process, space FROM client WHERE session = ?1";
        let found = self.find(sql, [session], |row| {
            let (id, space) = (row.get(1)?, row.get(2)?);
            let (file, process) = (row.get(0)?, Process { id, space });
            Ok(Other { file, process })
        })?;
        let lives = |other: &Other| !self.folder.is_over(&other.file, other.process);
        if let Some(other) = found.as_ref().filter(|other| lives(other)) {
            self.others.insert(session, Some(other.clone()));
            return Ok(true);
        }
        self.others.insert(session, None);
        self.bury(session)?;
        self.after.ended_files.extend(found.map(|other| other.file));
        Ok(false)
    }

    /// Deletes all rows of a client. What it has kept stays.
    pub(crate) fn bury(&mut self, session: i64) -> rusqlite::Result<()> {
        let sql = "SELECT name FROM hold WHERE session = ?1
            UNION SELECT name FROM place WHERE session = ?1";
        let names = self.list(sql, [session], |row| row.get(0))?;
        self.freed.extend(names);
        for delete in [
            "DELETE FROM hold WHERE session = ?1",
            "DELETE FROM place WHERE session = ?1",
            "DELETE FROM latch_place WHERE session = ?1",
            "DELETE FROM client WHERE session = ?1",
        ] {
            self.execute(delete, [session])?;
        }
        Ok(())
    }

    /// Notifies a client when the transaction is committed.
    pub(crate) fn notify(&mut self, session: i64, news: News) {
        let to = match self.others.get(&session) {
            Some(Some(other)) => Some(other.file.clone()),
            _ if session == self.session => None,
            _ => return,
        };
        self.after.mails.push(Mail { to, news });
    }

    /// Notifies a client of a grant when the transaction is committed.
    pub(crate) fn notify_granted(&mut self, session: i64, owner: Owner, token: Option<u64>) {
        self.notify(session, News::Granted { owner, token });
    }

    /// From now on, the thread checks whether this client is alive.
    pub(crate) fn watch(&mut self, session: i64) {
        if let Some(Some(other)) = self.others.get(&session) {
            self.after.awaited.push((session, other.clone()));
        }
    }

    pub(crate) fn sessions(&self) -> rusqlite::Result<Vec<i64>> {
        self.list("SELECT session FROM client", (), |row| row.get(0))
    }

    pub(crate) fn sessions_of(&self, client: u128) -> rusqlite::Result<Vec<i64>> {
        let sql = "SELECT session FROM client WHERE client = ?1";
        self.list(sql, [client.to_be_bytes()], |row| row.get(0))
    }
}

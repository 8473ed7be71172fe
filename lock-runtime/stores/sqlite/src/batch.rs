//! [`Opened`]: an open database, in which requests are carried out, many in one transaction.

use std::io;
use std::os::unix::net::UnixDatagram;

use lock_store::{ClientId, Failure, Link, StoreError};

use crate::client_folder::Folder;
use crate::client_row::ClientRow;
use crate::database::Database;
use crate::errors::{busy, is_unknown, of_io, of_sqlite, replaced};
use crate::files::NotBegun;
use crate::job::Job;
use crate::lock::hand_over_freed;
use crate::machine;
use crate::mail::Mail;
use crate::mailbox::{Hearer, LINK, Sender};
use crate::schema::expect_version;
use crate::step::{After, Other, Step};
use crate::sweep::Sweeps;

#[derive(Debug)]
pub(crate) struct Opened {
    database: Database,
    pub(crate) folder: Folder,
    client_row: ClientRow,
    sender: Sender,
    sweeps: Sweeps,
    /// The last change when the transaction began, and how many rows this connection had changed.
    begun: (u32, u64),
    /// The last change that this client knows: its own.
    seen: Option<u32>,
    /// What came of the last transactions: see [`After::awaited`].
    pub(crate) awaited: Vec<(i64, Other)>,
}

pub(crate) type Jobs = Vec<Box<dyn Job>>;

/// Answers all of them with this error.
pub(crate) fn fail(jobs: Jobs, error: &StoreError, unknown: Option<Link>) {
    for job in jobs {
        let error = error.clone();
        job.finish(Some(Failure::new(error, unknown)));
    }
}

impl Opened {
    /// With the socket of the client, or why it has none.
    pub(crate) fn new(
        mut database: Database,
        client: ClientId,
        hearer: Hearer,
    ) -> Result<(Self, io::Result<UnixDatagram>), StoreError> {
        let folder = Folder::beside(&database.path);
        let (client_row, socket, after) = ClientRow::enter(&mut database, &folder, client)?;
        let opened = Self {
            sender: Sender::new(folder.clone(), hearer),
            database,
            folder,
            client_row,
            sweeps: Sweeps::default(),
            begun: (0, 0),
            seen: None,
            awaited: Vec::new(),
        };
        opened.sender.send(after.mails);
        opened.clear_files(&after.ended_files);
        let files = opened.files();
        opened
            .folder
            .clear_strays(|name| files.as_ref().is_none_or(|files| files.contains(name)));
        Ok((opened, socket))
    }

    /// True if there is work although nobody has asked for anything: its files are gone, or it is
    /// time to delete what is over.
    pub(crate) fn has_work(&mut self) -> bool {
        self.database.look_up();
        let is_due = |now| self.sweeps.are_due(now);
        self.database.is_replaced() || machine::boot_nanos().is_ok_and(is_due)
    }

    /// True if one transaction was not enough for that.
    pub(crate) fn is_behind(&self) -> bool {
        self.sweeps.is_behind
    }

    fn files(&self) -> Option<std::collections::HashSet<String>> {
        let mut files = self
            .database
            .connection
            .prepare("SELECT file FROM client")
            .ok()?;
        let files = files.query_map((), |row| row.get(0)).ok()?;
        files.collect::<rusqlite::Result<_>>().ok()
    }

    fn clear_files(&self, ended_files: &[String]) {
        for name in ended_files {
            self.folder.clear(name);
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        of_sqlite(error, &self.database.path)
    }

    /// Carries out all of them and answers each. Gives them back if this database is not there any
    /// more.
    pub(crate) fn carry_out(
        &mut self,
        jobs: Jobs,
        is_late: &impl Fn(&dyn Job) -> bool,
    ) -> Result<(), Jobs> {
        let Some(mut jobs) = self.begin(jobs, is_late)? else {
            return Ok(());
        };
        jobs.retain(|job| job.begin());
        self.in_transaction(jobs, is_late);
        Ok(())
    }

    /// Begins a transaction for those that it returns.
    fn begin(
        &mut self,
        mut jobs: Jobs,
        is_late: impl Fn(&dyn Job) -> bool,
    ) -> Result<Option<Jobs>, Jobs> {
        loop {
            match self.begin_as_known() {
                Ok(()) => return Ok(Some(jobs)),
                Err(NotBegun::Busy) => {
                    let (late, rest): (Jobs, Jobs) =
                        jobs.into_iter().partition(|job| is_late(&**job));
                    fail(late, &busy(&self.database.path), None);
                    jobs = rest;
                    if jobs.is_empty() {
                        return Ok(None);
                    }
                }
                Err(NotBegun::Replaced) => return Err(jobs),
                Err(NotBegun::Failed(error)) => {
                    fail(jobs, &error, None);
                    return Ok(None);
                }
            }
        }
    }

    fn begin_as_known(&mut self) -> Result<(), NotBegun> {
        let change = self.database.begin()?;
        let rows = &self.database.connection;
        let known = match self.seen.take() == Some(change) {
            // Nobody else has changed anything.
            true => Ok(true),
            false => self.is_known(),
        };
        self.begun = (change, rows.total_changes());
        if !matches!(known, Ok(true)) {
            self.database.roll_back();
        }
        match known {
            Ok(true) => Ok(()),
            Ok(false) => Err(NotBegun::Replaced),
            Err(error) => Err(NotBegun::Failed(error)),
        }
    }

    /// False if the database has no row of this client. An error if its tables are of another
    /// version.
    fn is_known(&self) -> Result<bool, StoreError> {
        let Database {
            connection, path, ..
        } = &self.database;
        let known = self.client_row.is_known(connection);
        match known.map_err(|error| self.failed(&error))? {
            true => expect_version(connection, path).map(|()| true),
            false => Ok(false),
        }
    }

    /// The transaction has begun.
    fn in_transaction(&mut self, mut jobs: Jobs, is_late: &impl Fn(&dyn Job) -> bool) {
        let error = match self.run(&mut jobs) {
            Ok(Ok(after)) => return self.finish(jobs, after),
            Ok(Err(error)) => self.failed(&error),
            Err(error) => of_io(&error, &self.database.path),
        };
        self.database.roll_back();
        if jobs.len() <= 1 {
            return fail(jobs, &error, None);
        }
        // One's failure must not be the others'. Nothing has happened yet.
        for job in jobs {
            match self.begin(vec![job], is_late) {
                Ok(Some(job)) => self.in_transaction(job, is_late),
                Ok(None) => {}
                Err(job) => fail(job, &replaced(&self.database.path), None),
            }
        }
    }

    fn run(&mut self, jobs: &mut Jobs) -> io::Result<rusqlite::Result<After>> {
        // Read under the lock: transactions follow each other in time.
        let now = machine::boot_nanos()?;
        let mut step = self
            .client_row
            .step(&self.database.connection, &self.folder, now);
        Ok(run(jobs, &mut step, &mut self.sweeps).map(|()| step.after))
    }

    fn finish(&mut self, jobs: Jobs, after: After) {
        if let Err(error) = self.database.commit() {
            self.database.roll_back();
            let unknown = is_unknown(&error).then_some(LINK);
            return fail(jobs, &self.failed(&error), unknown);
        }
        if after.minted
            && let Err(error) = self.database.sync()
        {
            let error = of_io(&error, &self.database.path);
            return fail(jobs, &error, Some(LINK));
        }
        let (change, rows) = self.begun;
        let wrote = self.database.connection.total_changes() > rows;
        self.seen = Some(change.wrapping_add(wrote.into()));
        self.sender.send(after.mails);
        for job in jobs {
            job.finish(None);
        }
        self.clear_files(&after.ended_files);
        self.awaited.extend(after.awaited);
    }

    /// Deletes this client's rows and files. If its rows can't be deleted now, others do it, since
    /// its lock is free.
    pub(crate) fn leave(self) {
        let Self {
            mut database,
            folder,
            client_row,
            sender,
            ..
        } = self;
        match end(&mut database, &folder, &client_row) {
            Ok(mails) => {
                database.close();
                sender.send(mails);
                folder.leave(client_row.own);
            }
            // Its file stays, so that others can find out.
            Err(error) => tracing::debug!(%error, "a client's rows are left to others"),
        }
    }
}

/// Deletes a client's rows.
fn end(
    database: &mut Database,
    folder: &Folder,
    client_row: &ClientRow,
) -> Result<Vec<Mail>, StoreError> {
    // Rolled back when it is closed.
    database.begin_patiently()?;
    expect_version(&database.connection, &database.path)?;
    let now = machine::boot_nanos().map_err(|error| of_io(&error, &database.path))?;
    let mut step = client_row.step(&database.connection, folder, now);
    let ended = step
        .bury(client_row.id)
        .and_then(|()| hand_over_freed(&mut step));
    let mails = step.after.mails;
    let ended = ended.and_then(|()| database.commit());
    ended.map_err(|error| of_sqlite(&error, &database.path))?;
    Ok(mails)
}

fn run(jobs: &mut Jobs, step: &mut Step<'_>, sweeps: &mut Sweeps) -> rusqlite::Result<()> {
    for job in jobs {
        job.run(step)?;
        hand_over_freed(step)?;
    }
    sweeps.sweep(step)?;
    hand_over_freed(step)
}

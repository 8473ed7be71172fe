//! [`Opened`]: an open database, in which requests are carried out, many in one transaction.

use lock_store::{ClientId, Failure, Link, StoreError};

use crate::database::Database;
use crate::errors::{is_busy, is_unknown, of_io, of_sqlite};
use crate::folder::Folder;
use crate::job::Job;
use crate::lock::hand_over_freed;
use crate::machine;
use crate::mail::Mail;
use crate::mailbox::{Hearer, LINK, Sender};
use crate::session::Session;
use crate::step::{After, Other, Step};
use crate::sweep::sweep;

/// So many transactions between two sweeps.
const SWEEPS_AFTER: u32 = 1000;

/// An open database.
#[derive(Debug)]
pub(crate) struct Opened {
    database: Database,
    pub(crate) folder: Folder,
    session: Session,
    sender: Sender,
    sweeps_in: u32,
    /// What came of the last transactions: see [`After::awaited`].
    pub(crate) awaited: Vec<(i64, Other)>,
}

pub(crate) type Jobs = Vec<Box<dyn Job>>;

/// Answers all of them with this error.
pub(crate) fn fail(jobs: Jobs, error: &StoreError, unknown: Option<Link>) {
    for job in jobs {
        let error = error.clone();
        job.ends(Some(Failure::new(error, unknown)));
    }
}

impl Opened {
    pub(crate) fn new(
        database: Database,
        client: ClientId,
        hearer: Hearer,
    ) -> Result<Self, StoreError> {
        let folder = Folder::beside(&database.path);
        let (session, after) = Session::enter(&database, &folder, client)?;
        let opened = Self {
            sender: Sender::new(folder.clone(), hearer),
            database,
            folder,
            session,
            sweeps_in: SWEEPS_AFTER,
            awaited: Vec::new(),
        };
        opened.sender.send(after.mails);
        opened.clear_files(&after.over);
        let files = opened.files();
        opened
            .folder
            .clear_strays(|name| files.as_ref().is_none_or(|files| files.contains(name)));
        Ok(opened)
    }

    /// The path of this client's own socket.
    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.folder.socket(&self.session.own.name)
    }

    /// See [`Database::is_replaced`].
    pub(crate) fn is_replaced(&self) -> bool {
        self.database.is_replaced()
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

    fn clear_files(&self, over: &[String]) {
        for name in over {
            self.folder.clear(name);
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        of_sqlite(error, &self.database.path)
    }

    /// Carries out all of them and answers each.
    pub(crate) fn carry_out(&mut self, mut jobs: Jobs, is_late: impl Fn(&dyn Job) -> bool) {
        loop {
            match self.database.begin() {
                Ok(()) => break,
                Err(error) if is_busy(&error) => {
                    let (late, rest): (Jobs, Jobs) =
                        jobs.into_iter().partition(|job| is_late(&**job));
                    fail(late, &self.failed(&error), None);
                    jobs = rest;
                    if jobs.is_empty() {
                        return;
                    }
                }
                Err(error) => return fail(jobs, &self.failed(&error), None),
            }
        }
        jobs.retain(|job| job.starts());
        self.in_transaction(jobs, &is_late);
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
            let job = vec![job];
            loop {
                match self.database.begin() {
                    Ok(()) => break self.in_transaction(job, is_late),
                    Err(error) if is_busy(&error) && !is_late(&*job[0]) => {}
                    Err(error) => break fail(job, &self.failed(&error), None),
                }
            }
        }
    }

    fn run(&mut self, jobs: &mut Jobs) -> std::io::Result<rusqlite::Result<After>> {
        // Read under the lock: transactions follow each other in time.
        let now = machine::boot_nanos()?;
        let sweeps = self.sweeps_in == 0;
        self.sweeps_in = self.sweeps_in.checked_sub(1).unwrap_or(SWEEPS_AFTER);
        let mut step = self
            .session
            .step(&self.database.connection, &self.folder, now);
        Ok(run(jobs, &mut step, sweeps).map(|()| step.after))
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
        self.sender.send(after.mails);
        for job in jobs {
            job.ends(None);
        }
        self.clear_files(&after.over);
        self.awaited.extend(after.awaited);
    }

    /// Deletes this client's rows and files. If its rows can't be deleted now, others do it, since
    /// its lock is free.
    pub(crate) fn leave(self) {
        let Self {
            database,
            folder,
            session,
            sender,
            ..
        } = self;
        let ended = end(&database, &folder, &session);
        drop(database);
        match ended {
            Ok(mails) => {
                sender.send(mails);
                folder.leave(session.own);
            }
            // Its file stays, so that others can find out.
            Err(error) => tracing::debug!(%error, "a client's rows are left to others"),
        }
    }
}

/// Deletes a client's rows.
fn end(database: &Database, folder: &Folder, session: &Session) -> rusqlite::Result<Vec<Mail>> {
    database.begin_patiently()?;
    let now = machine::boot_nanos().map_err(|error| {
        database.roll_back();
        rusqlite::Error::ToSqlConversionFailure(error.into())
    })?;
    let mut step = session.step(&database.connection, folder, now);
    let ended = step
        .bury(session.id)
        .and_then(|()| hand_over_freed(&mut step))
        .and_then(|()| database.commit());
    if ended.is_err() {
        database.roll_back();
    }
    ended.map(|()| step.after.mails)
}

fn run(jobs: &mut Jobs, step: &mut Step<'_>, sweeps: bool) -> rusqlite::Result<()> {
    for job in jobs {
        job.run(step)?;
        hand_over_freed(step)?;
    }
    if sweeps {
        sweep(step)?;
    }
    Ok(())
}

//! The thread of one client: it has the connection, and carries out what waits for it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use lock_store::{ClientId, Clock, Instant, Listener, Mutex, StoreError};
use tokio::sync::oneshot;

use crate::batch::{Jobs, Opened, fail};
use crate::database::Database;
use crate::errors::replaced;
use crate::job::{Begun, Call, Job};
use crate::mailbox::{Hearer, receive};
use crate::step::{Other, Step};

/// The largest number of requests in one transaction.
const AT_ONCE: usize = 256;

/// How often the thread looks whether the clients live that its own places wait for.
pub(crate) const LOOKS_EACH: Duration = Duration::from_millis(50);

/// How often it looks whether its files are still there, and whether something is to be cleaned.
const CHECKS_EACH: Duration = Duration::from_secs(1);

/// The pause if there is more to be cleaned than fits into one transaction.
const CLEANS_ON: Duration = Duration::from_millis(10);

/// At most this many databases in a row.
const ATTEMPTS: u32 = 3;

/// A place asks each second. A client that no place has waited for in this time is not looked at
/// any more.
const AWAITED: Duration = Duration::from_millis(2500);

/// What the client and its thread both know.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    /// Since when it is open.
    pub(crate) opened: Mutex<Option<Instant>>,
}

/// The thread's own.
pub(crate) struct Worker {
    pub(crate) path: PathBuf,
    pub(crate) client: ClientId,
    pub(crate) hearer: Hearer,
    pub(crate) clock: Clock,
    pub(crate) jobs: Receiver<Box<dyn Job>>,
    pub(crate) state: Arc<WorkerState>,
    /// The other clients that places of this one wait for, and until when they do.
    pub(crate) awaited: HashMap<i64, (Other, Instant)>,
    /// When to look for them.
    pub(crate) looks_at: Instant,
    /// When to look at the files and at what is to be cleaned.
    pub(crate) checks_at: Instant,
}

/// An open database, and a client that receives news until this ends.
struct Open {
    opened: Opened,
    _receives: oneshot::Sender<()>,
}

impl Worker {
    /// Works until the client is closed.
    pub(crate) fn run(mut self) {
        // If this fails, the first request tries again, and is told why.
        let mut open = self.open().ok();
        while let Some(jobs) = self.next(open.as_ref()) {
            let has_work = self.check(&mut open);
            if has_work || !jobs.is_empty() {
                self.carry_out(&mut open, jobs);
            }
        }
        *self.state.opened.lock() = None;
        if let Some(Open { opened, .. }) = open {
            opened.leave();
        }
    }

    /// Now and then: true if the database has work although nobody has asked for anything.
    fn check(&mut self, open: &mut Option<Open>) -> bool {
        let now = self.clock.now();
        if now < self.checks_at {
            return false;
        }
        self.checks_at = now + CHECKS_EACH;
        open.as_mut().is_some_and(|open| open.opened.has_work())
    }

    /// In another database, if this one was taken away.
    fn carry_out(&mut self, open: &mut Option<Open>, mut jobs: Jobs) {
        for _ in 0..ATTEMPTS {
            let Open { opened, .. } = match open {
                Some(open) => open,
                None => match self.open() {
                    Ok(opened) => open.insert(opened),
                    Err(error) => return fail(jobs, &error, None),
                },
            };
            let done = opened.carry_out(jobs, &|job: &dyn Job| self.clock.now() >= job.by());
            let Err(again) = done else {
                let now = self.clock.now();
                if opened.is_behind() {
                    self.checks_at = self.checks_at.min(now + CLEANS_ON);
                }
                let until = now + AWAITED;
                for (session, other) in opened.awaited.drain(..) {
                    self.awaited.insert(session, (other, until));
                }
                return;
            };
            tracing::error!(
                path = %self.path.display(),
                "the database of the locks, or a file that SQLite keeps beside it, was deleted or \
                 replaced while it was in use: what is held is lost, and others may hold it already"
            );
            let (server, error) = (self.path.display().to_string(), replaced(&self.path));
            self.hearer.listener.on_disconnected(&server, &error);
            *open = None;
            *self.state.opened.lock() = None;
            jobs = again;
        }
        fail(jobs, &replaced(&self.path), None);
    }

    fn open(&self) -> Result<Open, StoreError> {
        let database = Database::open(&self.path)?;
        let (opened, socket) = Opened::new(database, self.client, self.hearer.clone())?;
        let (receives, closed) = oneshot::channel();
        let received =
            socket.and_then(|socket| receive(socket, self.hearer.clone(), &self.clock, closed));
        if let Err(error) = received {
            tracing::warn!(
                folder = %opened.folder.path().display(), %error,
                "a client has no socket, so its waiting requests learn of their grants only when \
                 they ask again, each second"
            );
        }
        *self.state.opened.lock() = Some(self.clock.now());
        let server = self.path.display().to_string();
        self.hearer.listener.on_connected(&server);
        Ok(Open {
            opened,
            _receives: receives,
        })
    }

    /// The next requests, or none if there are none for a while. `None` at the end.
    fn next(&mut self, open: Option<&Open>) -> Option<Jobs> {
        let now = self.clock.now();
        let wakes_at = match self.awaited.is_empty() {
            true => self.checks_at,
            false => self.checks_at.min(self.looks_at),
        };
        let left = wakes_at.saturating_duration_since(now);
        let mut jobs = if left.is_zero() {
            self.looks_at = now + LOOKS_EACH;
            open.map_or_else(Vec::new, |open| self.bury_over(open, now))
        } else {
            match self.jobs.recv_timeout(left) {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        };
        let more = AT_ONCE.saturating_sub(jobs.len());
        jobs.extend(self.jobs.try_iter().take(more));
        Some(jobs)
    }

    /// Requests to bury the clients that are over.
    fn bury_over(&mut self, open: &Open, now: Instant) -> Jobs {
        self.awaited.retain(|_, (_, until)| *until > now);
        let folder = &open.opened.folder;
        let is_over = |other: &Other| folder.is_over(&other.file, other.process);
        let over = self.awaited.iter().filter(|(_, (other, _))| is_over(other));
        let over = over.map(|(session, _)| *session);
        over.map(|session| bury(session, now + AWAITED)).collect()
    }
}

/// A request to bury a client. Nobody waits for the answer.
fn bury(session: i64, by: Instant) -> Box<dyn Job> {
    let verb = move |step: &mut Step<'_>| step.check_alive(session).map(drop);
    let (reply, _) = oneshot::channel();
    Box::new(Call {
        verb,
        by,
        begun: Begun::default(),
        reply,
        value: None,
    })
}

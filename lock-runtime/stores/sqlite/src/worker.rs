//! The thread of one client: it has the connection, and carries out what waits for it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use lock_store::{ClientId, Clock, Instant, Mutex, StoreError};
use tokio::sync::oneshot;

use crate::batch::{Jobs, Opened, fail};
use crate::database::Database;
use crate::job::{Begun, Call, Job};
use crate::mailbox::{Hearer, receive};
use crate::step::{Other, Step};

/// The largest number of requests in one transaction.
const AT_ONCE: usize = 256;

/// How often the thread looks whether the clients live that its own places wait for.
pub(crate) const LOOKS_EACH: Duration = Duration::from_millis(50);

/// A place asks each second. What was not asked for so long is not waited for any more.
const AWAITED: Duration = Duration::from_millis(2500);

/// What the client and its thread both know.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Since when it is open.
    pub(crate) opened: Mutex<Option<Instant>>,
}

/// The thread's own.
pub(crate) struct Worker {
    path: PathBuf,
    client: ClientId,
    hearer: Hearer,
    clock: Clock,
    jobs: Receiver<Box<dyn Job>>,
    state: Arc<State>,
    /// The other clients that places of this one wait for, and until when they do.
    awaited: HashMap<i64, (Other, Instant)>,
    /// When to look for them.
    looks_at: Instant,
}

/// An open database, and a client that receives news until this ends.
struct Open {
    opened: Opened,
    _receives: oneshot::Sender<()>,
}

impl Worker {
    pub(crate) fn new(
        path: PathBuf,
        client: ClientId,
        hearer: Hearer,
        clock: Clock,
        jobs: Receiver<Box<dyn Job>>,
        state: Arc<State>,
    ) -> Self {
        let looks_at = clock.now();
        Self {
            path,
            client,
            hearer,
            clock,
            jobs,
            state,
            awaited: HashMap::new(),
            looks_at,
        }
    }

    /// Works until the client is closed.
    pub(crate) fn run(mut self) {
        // If this fails, the first request tries again, and is told why.
        let mut open = self.open().ok();
        while let Some(jobs) = self.next(open.as_ref()) {
            if jobs.is_empty() {
                continue;
            }
            if open.as_ref().is_some_and(|open| open.opened.is_replaced()) {
                tracing::error!(
                    path = %self.path.display(),
                    "the database of the locks was deleted or replaced while it was in use: what \
                     is held is lost, and others may hold it already"
                );
                open = None;
            }
            let Open { opened, .. } = match &mut open {
                Some(open) => open,
                None => match self.open() {
                    Ok(opened) => open.insert(opened),
                    Err(error) => {
                        fail(jobs, &error, None);
                        continue;
                    }
                },
            };
            opened.carry_out(jobs, |job| self.clock.now() >= job.by());
            let until = self.clock.now() + AWAITED;
            for (session, other) in opened.awaited.drain(..) {
                self.awaited.insert(session, (other, until));
            }
        }
        *self.state.opened.lock() = None;
        if let Some(Open { opened, .. }) = open {
            opened.leave();
        }
    }

    fn open(&self) -> Result<Open, StoreError> {
        let database = Database::open(&self.path)?;
        let opened = Opened::new(database, self.client, self.hearer.clone())?;
        let (receives, closed) = oneshot::channel();
        let socket = opened.socket();
        if let Err(error) = receive(&socket, self.hearer.clone(), &self.clock, closed) {
            tracing::warn!(
                socket = %socket.display(), %error,
                "a client has no socket, so its waiting requests learn of their grants only when \
                 they ask again, each second"
            );
        }
        *self.state.opened.lock() = Some(self.clock.now());
        if let Some(listener) = self.hearer.engine() {
            listener.connected(&self.path.display().to_string());
        }
        Ok(Open {
            opened,
            _receives: receives,
        })
    }

    /// The next requests, or none if there is nothing to do. `None` at the end.
    fn next(&mut self, open: Option<&Open>) -> Option<Jobs> {
        let first = if self.awaited.is_empty() {
            self.jobs.recv().ok()?
        } else {
            let now = self.clock.now();
            let left = self.looks_at.saturating_duration_since(now);
            if left.is_zero() {
                self.looks_at = now + LOOKS_EACH;
                return Some(open.map_or_else(Vec::new, |open| self.looks(open, now)));
            }
            match self.jobs.recv_timeout(left) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => return Some(Vec::new()),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        };
        let mut jobs = vec![first];
        jobs.extend(self.jobs.try_iter().take(AT_ONCE - 1));
        Some(jobs)
    }

    /// Requests to bury the clients that are over.
    fn looks(&mut self, open: &Open, now: Instant) -> Jobs {
        self.awaited.retain(|_, (_, until)| *until > now);
        let folder = &open.opened.folder;
        let is_over = |other: &Other| folder.is_over(&other.file, other.process);
        let over = self.awaited.iter().filter(|(_, (other, _))| is_over(other));
        let over = over.map(|(session, _)| *session);
        over.map(|session| buries(session, now + AWAITED)).collect()
    }
}

/// Nobody waits for the answer.
fn buries(session: i64, by: Instant) -> Box<dyn Job> {
    let verb = move |step: &mut Step<'_>| step.lives(session).map(drop);
    let (reply, _) = oneshot::channel();
    Box::new(Call {
        verb,
        by,
        begun: Begun::default(),
        reply,
        value: None,
    })
}

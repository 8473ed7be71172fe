//! The jobs that nobody waits for: releases of dropped guards, and undos of unknown outcomes.

mod backlog;
mod backlogs;
mod pending_jobs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_store::timing::QUEUE_TTL;
use lock_store::{Acquire, Answer, Claim, Clock, Failure, Instant, Link, Release, Released, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use self::backlog::{AT_ONCE, JobAttempt};
use self::backlogs::Backlogs;
use self::pending_jobs::PendingJobs;
use crate::engine::late_acquire::LateAcquire;
use crate::engine::liveness::Liveness;
use crate::engine::local_queue::Releasing;
use crate::engine::observed::Observed;
use crate::engine::timing;

/// At most this many releases are tried for the first time at once. A release under way takes some
/// kilobytes, and ten times as much while it waits for its turn at the server; this many keep a
/// server busy.
const RELEASES_AT_ONCE: usize = 256;

/// Something to end.
#[derive(Debug)]
pub(crate) enum CleanupJob {
    Release(PendingRelease),
    Undo(PendingUndo),
    /// Answer when everything before this is done.
    Drain(oneshot::Sender<()>),
}

/// What it is if a release in the background finds no hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum GoneHold {
    IsFailure,
    /// It expired, the store said that it is gone, or an earlier release was carried out.
    IsExpected,
}

/// The hold of a guard, or what of it is at one server.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    pub(crate) requests: Vec<Release>,
    /// The key stays taken until then.
    pub(crate) keep_until: Instant,
    /// When the hold ends by itself.
    pub(crate) expires: Instant,
    /// Until the first answer, later requests of this process wait.
    pub(crate) holds_back: Vec<Releasing>,
    pub(crate) pending_outcomes: Vec<(LateAcquire, Acquire)>,
    pub(in crate::engine) gone: GoneHold,
}

/// A place in the store's queue, or a grant that has come or may yet come.
#[derive(Debug)]
pub(crate) struct PendingUndo {
    pub(crate) request: Acquire,
    pub(crate) pending_outcome: Option<LateAcquire>,
    pub(crate) expires: Instant,
    /// Until the first answer, and for one command's time at most if there are many, later requests
    /// of this process wait.
    pub(crate) holds_back: Option<Releasing>,
}

/// The way to the cleanup task. The task ends when all of these are gone and its work is done.
#[derive(Clone, Debug)]
pub(crate) struct Cleanup {
    jobs: mpsc::UnboundedSender<CleanupJob>,
    failures: Arc<AtomicU64>,
    pending: Arc<PendingJobs>,
}

/// Does the jobs, on the client's own runtime: one task for all of them.
#[derive(Debug)]
pub(crate) struct CleanupTask {
    jobs: mpsc::UnboundedReceiver<CleanupJob>,
    worker: CleanupWorker,
    /// One for each granted hold at each server: they must not wait behind requests that came to
    /// nothing.
    releases: Backlogs<PendingRelease>,
    undos: Backlogs<PendingUndo>,
}

/// The result of one try. A job that is not done is tried again then.
enum AttemptEnd {
    Release {
        link: Link,
        tries: u32,
        again: Option<(Instant, PendingRelease)>,
        undos: Vec<PendingUndo>,
    },
    Undo {
        link: Link,
        tries: u32,
        again: Option<(Instant, PendingUndo)>,
    },
}

#[derive(Clone, Debug)]
struct CleanupWorker {
    store: Arc<dyn Store>,
    clock: Clock,
    liveness: Arc<Liveness>,
    command_timeout: Duration,
    failures: Arc<AtomicU64>,
    pending: Arc<PendingJobs>,
}

impl Cleanup {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        liveness: Arc<Liveness>,
        observed: Arc<Observed>,
        command_timeout: Duration,
    ) -> (Self, CleanupTask) {
        let (sender, jobs) = mpsc::unbounded_channel();
        let failures = Arc::<AtomicU64>::default();
        let pending = Arc::new(PendingJobs::new(observed));
        let worker = CleanupWorker {
            store,
            clock,
            liveness,
            command_timeout,
            failures: Arc::clone(&failures),
            pending: Arc::clone(&pending),
        };
        (
            Self {
                jobs: sender,
                failures,
                pending,
            },
            CleanupTask {
                jobs,
                worker,
                releases: Backlogs::new(RELEASES_AT_ONCE),
                undos: Backlogs::new(AT_ONCE),
            },
        )
    }

    pub(crate) fn send(&self, job: CleanupJob) {
        let counts = !matches!(job, CleanupJob::Drain(_));
        if counts {
            self.pending.add_one();
        }
        // After a shutdown nobody does it. The lease ends by itself.
        if self.jobs.send(job).is_err() && counts {
            self.pending.finish_one();
        }
    }

    /// Jobs that are not done.
    pub(crate) fn pending(&self) -> usize {
        self.pending.jobs()
    }

    /// Waits until everything sent so far is done.
    pub(crate) async fn until_drained(&self) {
        let (done, drained) = oneshot::channel();
        self.send(CleanupJob::Drain(done));
        let _ = drained.await;
    }

    /// Releases that failed or found their hold gone.
    pub(crate) fn release_failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl CleanupTask {
    /// Works until every [`Cleanup`] is gone and nothing is left to do.
    pub(crate) async fn run(mut self) {
        let mut working = JoinSet::new();
        let mut drains = Vec::<oneshot::Sender<()>>::new();
        let clock = self.worker.clock.clone();
        let mut is_open = true;
        loop {
            self.start(&mut working);
            if working.is_empty() && self.releases.is_empty() && self.undos.is_empty() {
                drains.drain(..).for_each(|done| _ = done.send(()));
                if !is_open {
                    break;
                }
            }
            let wake_at = self.wake_at();
            let wake = async {
                match wake_at {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(ended) = working.join_next() => if let Ok(ended) = ended {
                    self.finish(ended);
                },
                job = self.jobs.recv(), if is_open => match job {
                    Some(CleanupJob::Drain(done)) => drains.push(done),
                    Some(CleanupJob::Release(job)) => {
                        let link = self.worker.link_of_release(&job);
                        self.releases.push(clock.now(), link, job);
                    }
                    Some(CleanupJob::Undo(job)) => self.push_undo(clock.now(), job),
                    None => is_open = false,
                },
                () = wake => {}
            }
        }
        let by = clock.now() + self.worker.command_timeout;
        self.worker.store.finish(by).await;
        self.worker.store.close();
    }

    fn push_undo(&mut self, now: Instant, job: PendingUndo) {
        let link = self.worker.link_of(&job.request.claim);
        self.undos.push(now, link, job);
    }

    /// Starts what may be tried now.
    fn start(&mut self, working: &mut JoinSet<AttemptEnd>) {
        let CleanupWorker {
            clock,
            command_timeout,
            ..
        } = &self.worker;
        let now = clock.now();
        while let Some((link, attempt)) = self.releases.next(now) {
            working.spawn(clock.stoppable(self.worker.clone().release(link, attempt)));
        }
        while let Some((link, attempt)) = self.undos.next(now) {
            working.spawn(clock.stoppable(self.worker.clone().undo(link, attempt)));
        }
        // No request waits for what is not sent yet for longer than one command may take.
        if let Some(since) = now.checked_sub(*command_timeout) {
            let releases = self.releases.overdue(since);
            releases.for_each(|release| release.holds_back.clear());
            let undos = self.undos.overdue(since);
            undos.for_each(|undo| drop(undo.holds_back.take()));
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let patience = self.worker.command_timeout;
        let releases = self.releases.wake_at(patience);
        releases
            .into_iter()
            .chain(self.undos.wake_at(patience))
            .min()
    }

    fn finish(&mut self, ended: AttemptEnd) {
        match ended {
            AttemptEnd::Release {
                link,
                tries,
                again,
                undos,
            } => {
                let is_done = again.is_none();
                let again = again.map(|(at, job)| (at, self.worker.link_of_release(&job), job));
                self.releases.finish(link, tries, again);
                let now = self.worker.clock.now();
                for undo in undos {
                    self.worker.pending.add_one();
                    self.push_undo(now, undo);
                }
                if is_done {
                    self.worker.pending.finish_one();
                }
            }
            AttemptEnd::Undo { link, tries, again } => {
                let is_done = again.is_none();
                let link_now = |job: &PendingUndo| self.worker.link_of(&job.request.claim);
                let again = again.map(|(at, job)| (at, link_now(&job), job));
                self.undos.finish(link, tries, again);
                if is_done {
                    self.worker.pending.finish_one();
                }
            }
        }
    }
}

impl CleanupWorker {
    /// Where a job for this claim stands in line.
    fn link_of(&self, claim: &Claim) -> Link {
        self.store.link_of(&claim.key)
    }

    /// The keys of a release were at one server when it came.
    fn link_of_release(&self, job: &PendingRelease) -> Link {
        let first = job.requests.first();
        first.map_or_else(|| self.store.link(), |one| self.link_of(&one.claim))
    }

    async fn release(self, link: Link, attempt: JobAttempt<PendingRelease>) -> AttemptEnd {
        let JobAttempt { tries, mut job } = attempt;
        let sent = self.clock.now();
        for request in &mut job.requests {
            request.keep = job.keep_until.saturating_duration_since(sent);
        }
        let by = sent + self.command_timeout;
        let result = self.store.release(job.requests.clone(), by).await;
        job.holds_back.clear();
        self.liveness.note(sent, &result);
        let (again, undos) = match result {
            Ok(answer) => (None, self.undos_after(job, sent, &answer)),
            Err(failure) => (self.release_again(job, tries, &failure), Vec::new()),
        };
        AttemptEnd::Release {
            link,
            tries,
            again,
            undos,
        }
    }

    /// What a release that was answered has left to be undone.
    fn undos_after(
        &self,
        job: PendingRelease,
        sent: Instant,
        answer: &Answer<Vec<Released>>,
    ) -> Vec<PendingUndo> {
        let mut replies = job.requests.iter().zip(&answer.value);
        let gone = replies.find(|(_, released)| **released == Released::NotHeld);
        if let Some((request, _)) = gone
            && job.gone == GoneHold::IsFailure
        {
            self.failures.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                key = %request.claim.key.shortened(),
                "a lock was gone when it was released"
            );
        }
        let was_held = gone.is_none();
        let late = job.pending_outcomes.into_iter();
        let late = late.filter(|(late, _)| !late.is_undone_by_release(was_held, answer.link, sent));
        // A late renewal may keep what a late acquire took.
        let expires = job.expires.max(self.clock.now() + QUEUE_TTL);
        late.map(|(late, request)| PendingUndo {
            request,
            pending_outcome: Some(late),
            expires: late.until.max(expires),
            holds_back: None,
        })
        .collect()
    }

    /// When a release that failed is tried again, until its lease ends.
    fn release_again(
        &self,
        mut job: PendingRelease,
        tries: u32,
        failure: &Failure,
    ) -> Option<(Instant, PendingRelease)> {
        if self.store.is_closed() {
            return None;
        }
        if job.gone == GoneHold::IsFailure {
            self.failures.fetch_add(1, Ordering::Relaxed);
            let key = job.requests.first();
            let key = key.map(|request| request.claim.key.shortened());
            tracing::warn!(
                key = key.map(tracing::field::display), error = %failure.error,
                "a lock could not be released; it is tried again until its lease ends"
            );
        }
        job.gone = GoneHold::IsExpected;
        let now = self.clock.now();
        let again = now + timing::backoff(tries.saturating_add(1));
        (now < job.expires).then_some((again, job))
    }

    async fn undo(self, link: Link, attempt: JobAttempt<PendingUndo>) -> AttemptEnd {
        let JobAttempt { tries, mut job } = attempt;
        let late = job.pending_outcome;
        let sent = self.clock.now();
        let by = sent + self.command_timeout;
        let result = self.store.abandon(job.request.clone(), by).await;
        job.holds_back.take();
        self.liveness.note(sent, &result);
        let now = self.clock.now();
        let times = tries.saturating_add(1);
        let again = match result {
            Ok(answer) if late.is_none_or(|late| late.is_undone(answer.link, sent)) => None,
            // Once more at the very end, after which a late command counts as lost.
            Ok(_) => late.map(|late| {
                let pause = timing::undo_pause(times, job.request.lease);
                late.until.min(now + pause)
            }),
            Err(_) if now >= job.expires || self.store.is_closed() => None,
            Err(failure) => {
                tracing::debug!(
                    key = %job.request.claim.key.shortened(), error = %failure.error,
                    "an undo is tried again"
                );
                Some(now + timing::backoff(times))
            }
        };
        AttemptEnd::Undo {
            link,
            tries,
            again: again.map(|at| (at, job)),
        }
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests;

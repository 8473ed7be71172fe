//! Ends in the background what nobody waits for: releases of dropped guards, and undos of unknown
//! outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_store::{Acquire, Clock, Instant, Release, Released, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::engine::hold::part::LateAcquire;
use crate::engine::liveness::Liveness;
use crate::engine::local_queue::Releasing;
use crate::engine::timing::{self, Retry};

/// Something to end.
#[derive(Debug)]
pub(crate) enum Job {
    Release(PendingRelease),
    Undo(PendingUndo),
    /// Answer when everything before this is done.
    Drain(oneshot::Sender<()>),
}

/// The hold of a guard.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    pub(crate) requests: Vec<Release>,
    /// The key stays taken until then.
    pub(crate) keep_until: Instant,
    /// When the hold ends by itself.
    pub(crate) expires: Instant,
    /// Until the first answer, later requests of this process wait.
    pub(crate) first: Vec<Releasing>,
    pub(crate) late: Vec<(LateAcquire, Acquire)>,
    /// The hold may be gone for a known reason: it expired, or an earlier release was carried out.
    pub(crate) expected_gone: bool,
}

/// A place in the store's queue, or a grant that came or may yet come.
#[derive(Debug)]
pub(crate) struct PendingUndo {
    pub(crate) request: Acquire,
    pub(crate) late: Option<LateAcquire>,
    pub(crate) expires: Instant,
    /// Until the first answer, later requests of this process wait.
    pub(crate) first: Option<Releasing>,
}

/// The way to the undo task, which ends when all of these are gone and its work is done.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    jobs: mpsc::UnboundedSender<Job>,
    failures: Arc<AtomicU64>,
}

/// Does the jobs, on the client's own runtime.
#[derive(Debug)]
pub(crate) struct UndoTask {
    jobs: mpsc::UnboundedReceiver<Job>,
    worker: Worker,
}

#[derive(Clone, Debug)]
struct Worker {
    store: Arc<dyn Store>,
    clock: Clock,
    liveness: Arc<Liveness>,
    command_timeout: Duration,
    failures: Arc<AtomicU64>,
}

impl Undo {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        liveness: Arc<Liveness>,
        command_timeout: Duration,
    ) -> (Self, UndoTask) {
        let (sender, jobs) = mpsc::unbounded_channel();
        let failures = Arc::<AtomicU64>::default();
        let worker = Worker {
            store,
            clock,
            liveness,
            command_timeout,
            failures: Arc::clone(&failures),
        };
        (
            Self {
                jobs: sender,
                failures,
            },
            UndoTask { jobs, worker },
        )
    }

    pub(crate) fn send(&self, job: Job) {
        // After a shutdown there is nobody to do it; the lease does.
        let _ = self.jobs.send(job);
    }

    /// Waits until everything sent so far is done.
    pub(crate) async fn drained(&self) {
        let (done, drained) = oneshot::channel();
        self.send(Job::Drain(done));
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

impl UndoTask {
    /// Works until every [`Undo`] is gone and nothing is left to do.
    pub(crate) async fn run(mut self) {
        let mut working = JoinSet::new();
        let mut drains = Vec::new();
        let clock = self.worker.clock.clone();
        loop {
            tokio::select! {
                biased;
                Some(_) = working.join_next() => {}
                job = self.jobs.recv() => match job {
                    Some(Job::Drain(done)) => drains.push(done),
                    Some(job) => _ = working.spawn(clock.stoppable(self.worker.clone().work(job))),
                    None => break,
                }
            }
            if working.is_empty() {
                drains.drain(..).for_each(|done| _ = done.send(()));
            }
        }
        while working.join_next().await.is_some() {}
        self.worker.store.close();
    }
}

impl Worker {
    async fn work(self, job: Job) {
        match job {
            Job::Release(release) => self.release(release).await,
            Job::Undo(undo) => self.undo(undo).await,
            Job::Drain(_) => {}
        }
    }

    async fn release(&self, mut job: PendingRelease) {
        let mut retry = Retry::default();
        loop {
            let sent = self.clock.now();
            for request in &mut job.requests {
                request.keep = job.keep_until.saturating_duration_since(sent);
            }
            let result = self
                .store
                .release(job.requests.clone(), sent + self.command_timeout)
                .await;
            job.first.clear();
            self.liveness.note(sent, &result);
            match result {
                Ok(answer) => {
                    let gone = job
                        .requests
                        .iter()
                        .zip(&answer.value)
                        .find(|(_, released)| **released == Released::NotHeld);
                    if let Some((request, _)) = gone
                        && !job.expected_gone
                    {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(
                            key = %request.claim.key.shortened(),
                            "a lock was gone when it was released"
                        );
                    }
                    for (late, acquire) in job.late {
                        // A late acquire that found the lock taken has a place in the store's
                        // queue, which a release leaves there.
                        if gone.is_some() || !late.is_undone(answer.link, sent) {
                            self.undo(PendingUndo {
                                request: acquire,
                                late: Some(late),
                                expires: late.until,
                                first: None,
                            })
                            .await;
                        }
                    }
                    return;
                }
                Err(failure) => {
                    if self.store.is_closed() {
                        return;
                    }
                    if !job.expected_gone {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                        let key = job
                            .requests
                            .first()
                            .map(|request| request.claim.key.shortened());
                        tracing::warn!(
                            key = key.map(tracing::field::display), error = %failure.error,
                            "a lock could not be released; it is tried again until its lease ends"
                        );
                    }
                    job.expected_gone = true;
                }
            }
            let now = self.clock.now();
            if now >= job.expires {
                return;
            }
            self.clock.sleep_until(retry.again_at(now)).await;
        }
    }

    async fn undo(&self, job: PendingUndo) {
        let PendingUndo {
            request,
            late,
            expires,
            mut first,
        } = job;
        let mut tries = 0;
        // What comes behind it on the same link undoes it for sure.
        let via = late.map_or(request.via, |late| late.link);
        let request = Acquire { via, ..request };
        loop {
            let sent = self.clock.now();
            let result = self
                .store
                .abandon(request.clone(), sent + self.command_timeout)
                .await;
            first.take();
            self.liveness.note(sent, &result);
            let now = self.clock.now();
            tries += 1;
            let again = match result {
                Ok(answer) if late.is_none_or(|late| late.is_undone(answer.link, sent)) => return,
                // Once more at the very end, after which a late command counts as lost.
                Ok(_) => late.map_or(now, |late| {
                    late.until
                        .min(now + timing::undo_pause(tries, request.lease))
                }),
                Err(_) if now >= expires || self.store.is_closed() => return,
                Err(failure) => {
                    tracing::debug!(
                        key = %request.claim.key.shortened(), error = %failure.error,
                        "an undo is tried again"
                    );
                    now + timing::backoff(tries)
                }
            };
            self.clock.sleep_until(again).await;
        }
    }
}

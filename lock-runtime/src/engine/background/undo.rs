//! Ends in the background what nobody waits for: releases of dropped guards, and undos of unknown
//! outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_store::{Acquire, Clock, Release, Released, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::engine::hold::part::LateAcquire;
use crate::engine::liveness::Liveness;
use crate::engine::local_queue::Releasing;
use crate::engine::timing::{self, Retry};

/// Something to end.
#[derive(Debug)]
pub(crate) enum Job {
    /// The hold of a guard.
    Release {
        requests: Vec<Release>,
        /// The key stays taken until then.
        keep_until: Instant,
        /// When the hold ends by itself.
        expires: Instant,
        /// Until the first answer, later requests of this process wait.
        first: Vec<Releasing>,
        late: Vec<(LateAcquire, Acquire)>,
        /// The hold may be gone for a known reason: it expired, or an earlier release was carried
        /// out.
        expected_gone: bool,
    },
    /// A place in the store's queue, or a grant that came or may yet come.
    Undo {
        request: Acquire,
        late: Option<LateAcquire>,
        expires: Instant,
        first: Option<Releasing>,
    },
    /// Answer when everything before this is done.
    Drain(oneshot::Sender<()>),
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
            Job::Release {
                requests,
                keep_until,
                expires,
                first,
                late,
                expected_gone,
            } => {
                self.release(requests, keep_until, expires, first, late, expected_gone)
                    .await;
            }
            Job::Undo {
                request,
                late,
                expires,
                first,
            } => self.undo(request, late, expires, first).await,
            Job::Drain(_) => {}
        }
    }

    async fn release(
        &self,
        mut requests: Vec<Release>,
        keep_until: Instant,
        expires: Instant,
        mut first: Vec<Releasing>,
        late: Vec<(LateAcquire, Acquire)>,
        mut expected_gone: bool,
    ) {
        let mut retry = Retry::default();
        loop {
            let sent = self.clock.now();
            for request in &mut requests {
                request.keep = keep_until.saturating_duration_since(sent);
            }
            let result = self
                .store
                .release(requests.clone(), sent + self.command_timeout)
                .await;
            first.clear();
            self.liveness.note(sent, &result);
            match result {
                Ok(answer) => {
                    let gone = requests
                        .iter()
                        .zip(&answer.value)
                        .find(|(_, released)| **released == Released::NotHeld);
                    if let Some((request, _)) = gone
                        && !expected_gone
                    {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(
                            key = %request.claim.key.shortened(),
                            "a lock was gone when it was released"
                        );
                    }
                    for (late, acquire) in late {
                        // A late acquire that found the lock taken has a place in the store's
                        // queue, which a release leaves there.
                        if gone.is_some() || !late.is_undone(answer.link, sent) {
                            self.undo(acquire, Some(late), late.until, None).await;
                        }
                    }
                    return;
                }
                Err(failure) => {
                    if self.store.is_closed() {
                        return;
                    }
                    if !expected_gone {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                        let key = requests
                            .first()
                            .map(|request| request.claim.key.shortened());
                        tracing::warn!(
                            key = key.map(tracing::field::display), error = %failure.error,
                            "a lock could not be released; it is tried again until its lease ends"
                        );
                    }
                    expected_gone = true;
                }
            }
            let now = self.clock.now();
            if now >= expires {
                return;
            }
            self.clock.sleep_until(retry.again_at(now)).await;
        }
    }

    async fn undo(
        &self,
        request: Acquire,
        late: Option<LateAcquire>,
        expires: Instant,
        mut first: Option<Releasing>,
    ) {
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

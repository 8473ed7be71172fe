//! When a waiting request gives up, and with which error. It is busy only if the store has lately
//! said so to it, or to one of this process that stands before it.

use std::sync::Arc;

use lock_store::timing::FALLBACK_POLL;
use lock_store::{Instant, StoreError, StoreErrorKind};

use super::task::AcquireTask;
use crate::engine::errors::unavailable;
use crate::engine::liveness::key::Said;
use crate::engine::local_queue::{Doing, Waiter};
use crate::engine::timing;
use crate::error::LockError;
use crate::mends::Mend;

/// What a request has heard of the store itself.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    /// It has asked.
    pub(super) asked: bool,
    /// It was told that the key is taken.
    pub(super) busy: bool,
}

impl AcquireTask<'_> {
    /// When it gives up if the store stays silent. Those that wait for the same key do so together.
    pub(super) fn gives_up_at(&self, waiter: Option<&Waiter>) -> Instant {
        let silence_ends = waiter.and_then(|waiter| self.silence_ends(waiter));
        let gives_up = self.waits_at_most(waiter);
        silence_ends.map_or(gives_up, |ends| ends.min(gives_up))
    }

    /// When it ends for the silence of the store, if nothing is heard until then.
    fn silence_ends(&self, waiter: &Waiter) -> Option<Instant> {
        let since = [waiter.liveness().silent_since(), self.engine.silent_since()];
        self.budget.silence_ends(since.into_iter().flatten().min())
    }

    fn waits_at_most(&self, waiter: Option<&Waiter>) -> Instant {
        let Some(waiter) = waiter.filter(|_| self.budget.ends().is_none()) else {
            return self.budget.gives_up(None);
        };
        if self.lacks(Mend::PatienceOfTheKey) {
            return self.budget.gives_up(self.engine.liveness.answered());
        }
        let silent = self.budget.gives_up(waiter.liveness().answered());
        let now = self.engine.clock.now();
        waiter.liveness().failing(now).map_or(silent, |failing| {
            self.budget.loses_patience(failing.since).min(silent)
        })
    }

    /// The error of a store that was silent for too long; and under a wait without end, of one that
    /// has failed for too long, or whose grants could not be used because the lease is too short.
    pub(super) fn loses_patience(
        &self,
        waiter: &Waiter,
        now: Instant,
        lease_is_too_short: Option<&StoreError>,
    ) -> Option<LockError> {
        if self.silence_ends(waiter).is_some_and(|ends| now >= ends) {
            let failing = waiter.liveness().failing(now);
            let error = match failing {
                Some(failing) => failing.error,
                // Those before it have met the silence.
                None => self.engine.liveness.last_failure(self.budget.started),
            };
            return Some(unavailable(Some(&self.request.claim.key), error));
        }
        if self.budget.ends().is_some() {
            return None;
        }
        if let Some(error) = lease_is_too_short {
            return Some(unavailable(Some(&self.request.claim.key), error.clone()));
        }
        if self.lacks(Mend::PatienceOfTheKey) {
            return None;
        }
        let failing = waiter.liveness().failing(now)?;
        let over = now >= self.budget.loses_patience(failing.since);
        over.then(|| unavailable(Some(&self.request.claim.key), failing.error))
    }

    /// Whether to stop waiting, and with which error.
    pub(super) async fn gives_up(&self, waiter: &Waiter, heard: Heard) -> Option<LockError> {
        if self.takes_keys_as_one() {
            let key = &self.request.claim.key;
            return Box::pin(self.engine.time_is_up(key, &self.budget, None)).await;
        }
        let asks_from = match self.budget.last_recheck() {
            Some(last_recheck) => last_recheck,
            None => self.gives_up_at(Some(waiter)),
        };
        if self.engine.clock.now() < asks_from {
            return None;
        }
        // Boxed, like everything rare: every waiting task has room for the largest of what it may
        // wait for.
        Box::pin(self.verdict(waiter, heard, asks_from)).await
    }

    async fn verdict(&self, waiter: &Waiter, heard: Heard, since: Instant) -> Option<LockError> {
        let (engine, key) = (self.engine, &self.request.claim.key);
        let now = engine.clock.now();
        let by = match self.budget.ends() {
            Some(_) => self.budget.gives_up(None).max(now),
            None => now + engine.defaults.command_timeout,
        };
        waiter.signal.doing(Doing::Looks(by));
        engine.asks_for_name(key, waiter.liveness().holder());
        let known = waiter.liveness().known(self.budget.started, since, |era| {
            self.looks(waiter, era, by)
        });
        let known = engine.clock.by(by, known).await;
        if self
            .budget
            .ends()
            .is_some_and(|ends| engine.clock.now() < ends)
        {
            // A failing store may come back in time for another try.
            return None;
        }
        // The first of them asks again at least so often.
        let lately = self.budget.started.checked_sub(FALLBACK_POLL);
        let told_busy = || heard.busy || waiter.liveness().was_taken(lately);
        if let (Some(Said::Alive), Some(_)) = (&known, self.budget.ends())
            && !(heard.asked || told_busy())
        {
            // It has its one try yet, when it is its turn.
            let _ = engine.clock.by(by, waiter.signal.notified()).await;
            if engine.clock.now() < by {
                return None;
            }
        }
        match known {
            Some(Said::Failing(error)) => Some(unavailable(Some(key), error)),
            Some(_) if self.budget.ends().is_none() => None,
            Some(Said::Alive) if !told_busy() => Some(unavailable(Some(key), not_to_this_one())),
            Some(Said::Contended(error)) if !told_busy() => Some(unavailable(Some(key), error)),
            Some(_) => {
                let holder = waiter.liveness().holder();
                Some(engine.busy(key, &self.budget, holder))
            }
            None if by <= now => Some(unavailable(Some(key), no_time_to_ask())),
            None => Some(unavailable(Some(key), not_in_time())),
        }
    }

    pub(super) fn lacks(&self, mend: Mend) -> bool {
        self.engine.defaults.taken_out.has(mend)
    }

    /// Whether one sign of life of the store stands for all of its keys.
    fn takes_keys_as_one(&self) -> bool {
        match self.budget.ends() {
            Some(_) => self.lacks(Mend::VerdictOfTheKey),
            None => self.lacks(Mend::PatienceOfTheKey),
        }
    }

    /// Looks at the key, on the client's own runtime: who waits for the answer may stop polling.
    fn looks(&self, waiter: &Waiter, era: u64, by: Instant) {
        let (store, clock) = (Arc::clone(&self.engine.store), self.engine.clock.clone());
        let (queue, key) = (Arc::clone(waiter.queue()), self.request.claim.key.clone());
        let timeout = self.engine.defaults.command_timeout;
        self.engine.clock.spawn(async move {
            let sent = clock.now();
            let time = timing::look_time(by.saturating_duration_since(sent), timeout);
            let result = store.inspect(key, sent + time).await;
            let says_nothing = timing::stood_still(sent, clock.now(), timeout);
            queue.liveness.looked(era, sent, says_nothing, &result);
        });
    }

    /// When to wake up if nothing happens.
    pub(super) fn wake_at(&self, waiter: &Waiter, asks_at: Option<Instant>) -> Instant {
        let now = self.engine.clock.now();
        let end = match self.budget.ends() {
            Some(ends) => ends,
            None => self.gives_up_at(Some(waiter)),
        };
        let last_recheck = self.budget.last_recheck().filter(|at| *at > now);
        [asks_at, last_recheck, self.silence_ends(waiter)]
            .into_iter()
            .flatten()
            .fold(end, Instant::min)
    }
}

fn not_in_time() -> StoreError {
    StoreError::new(StoreErrorKind::Timeout, "it does not answer")
}

fn no_time_to_ask() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "this process stood still, or was too busy, until the wait was over: \
         there was no time to ask it once more",
    )
}

fn not_to_this_one() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "it answers others, and gave this request no answer within its wait",
    )
}

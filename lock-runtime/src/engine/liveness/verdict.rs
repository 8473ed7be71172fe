//! When a request that waits for a latch gives up, and with which error.

use lock_store::{Instant, LockKey, StoreError};

use super::is_silence;
use crate::engine::Engine;
use crate::engine::errors::unavailable;
use crate::engine::timing::Budget;
use crate::error::LockError;

/// Since when commands have failed, and with what.
type Failing<'f> = Option<(Instant, &'f StoreError)>;

impl Engine {
    /// Whether to stop waiting for a latch, and with which error: busy only if the store has lately
    /// answered.
    pub(in crate::engine) async fn time_is_up(
        &self,
        key: &LockKey,
        budget: &Budget,
        failing: Failing<'_>,
    ) -> Option<LockError> {
        let now = self.clock.now();
        if let Some((_, error)) = failing
            && self
                .silence_ends(budget, failing)
                .is_some_and(|ends| now >= ends)
        {
            return Some(unavailable(Some(key), error.clone()));
        }
        let asks_from = match budget.last_recheck() {
            Some(last_recheck) => last_recheck,
            None => self.gives_up(budget, failing),
        };
        if self.clock.now() < asks_from {
            return None;
        }
        // Boxed, like everything rare: every waiting task has room for the largest of what it may
        // wait for.
        Box::pin(self.verdict(key, budget, failing)).await
    }

    async fn verdict(
        &self,
        key: &LockKey,
        budget: &Budget,
        failing: Failing<'_>,
    ) -> Option<LockError> {
        let now = self.clock.now();
        let gives_up = self.gives_up(budget, failing);
        let Some(ends) = budget.ends() else {
            if let Some((_, error)) = failing {
                return Some(unavailable(Some(key), error.clone()));
            }
            let by = now + self.defaults.command_timeout;
            let alive = self.liveness.check(&self.store, gives_up, by).await;
            return alive.err().map(|error| unavailable(Some(key), error));
        };
        let last_recheck = budget.last_recheck()?;
        let dead = match failing.map(|(_, error)| error.clone()) {
            Some(error) => Some(error),
            None => {
                let by = gives_up.max(now);
                let alive = self.liveness.check(&self.store, last_recheck, by).await;
                alive.err()
            }
        };
        match dead {
            None if self.clock.now() < ends => None,
            None => Some(self.busy(key, budget, None)),
            // It may come back in time for another try.
            Some(_) if self.clock.now() < ends => None,
            Some(error) => Some(unavailable(Some(key), error)),
        }
    }

    /// When a failing store is reported as dead: after its time, counted from the first
    /// failure, but not later than the time from which commands have none left to be answered in.
    fn gives_up(&self, budget: &Budget, failing: Failing<'_>) -> Instant {
        let silent = budget.gives_up(self.liveness.answered());
        failing.map_or(silent, |(since, _)| {
            budget.gives_up(Some(since)).min(silent)
        })
    }

    /// When a request ends for a store that is silent. A refusal is an answer.
    fn silence_ends(&self, budget: &Budget, failing: Failing<'_>) -> Option<Instant> {
        let (since, _) = failing.filter(|(_, error)| is_silence(error))?;
        let earlier = self.silent_since();
        budget.silence_ends(Some(earlier.map_or(since, |earlier| earlier.min(since))))
    }

    /// When to wake up if nothing happens.
    pub(in crate::engine) fn wake_at(
        &self,
        budget: &Budget,
        recheck_at: Option<Instant>,
        failing: Failing<'_>,
    ) -> Instant {
        let now = self.clock.now();
        let end = budget
            .ends()
            .unwrap_or_else(|| self.gives_up(budget, failing));
        let last_recheck = budget.last_recheck().filter(|at| *at > now);
        [recheck_at, last_recheck, self.silence_ends(budget, failing)]
            .into_iter()
            .flatten()
            .fold(end, Instant::min)
    }
}

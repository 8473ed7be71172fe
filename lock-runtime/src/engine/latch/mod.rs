//! Count-down latches: calls that are repeated until the store has answered, and the wait.

mod latch_facts;
pub(super) mod store_time;
mod view;
mod waiter;
pub(super) mod watch;
mod watcher;

use std::time::Duration;

use lock_store::{
    Instant, LatchCall, LatchCounted, LatchFound, LatchSet, LockKey, StoreFuture, Wish,
};

use self::waiter::{LatchAnswer, LatchWaiter};
use self::watcher::LatchWatcher;
use super::Engine;
use super::background::active::Active;
use super::errors::{unavailable, untimely};
use super::timing::{Budget, Retry};
use crate::config::{CALL_REPEATED, Wait};
use crate::error::{KeyKind, LockError};

impl Engine {
    /// Sets the latch. True if this call did.
    pub(crate) async fn set_latch(
        &self,
        key: &LockKey,
        count: u32,
        ttl: Duration,
    ) -> Result<bool, LockError> {
        let call = self.latch_call(key)?;
        let set = |by, made| {
            let mut call = call.clone();
            call.made = made;
            self.store.latch_set(call, count, ttl, by)
        };
        let told = |reply: &LatchSet| match reply {
            LatchSet::Untimely { now } => Some(*now),
            _ => None,
        };
        match self.repeat(key, &self.call_budget(), set, told).await? {
            LatchSet::Set => Ok(true),
            LatchSet::SetBefore => Ok(false),
            LatchSet::Untimely { .. } => Err(unavailable(Some(key), untimely())),
            LatchSet::Conflict => Err(conflict(key)),
        }
    }

    /// Counts down by one. How many are left.
    pub(crate) async fn count_down(&self, key: &LockKey) -> Result<u32, LockError> {
        let call = self.latch_call(key)?;
        let count_down = |by, made| {
            let mut call = call.clone();
            call.made = made;
            self.store.latch_count_down(call, by)
        };
        let told = |reply: &LatchCounted| match reply {
            LatchCounted::Untimely { now } => Some(*now),
            _ => None,
        };
        let budget = self.call_budget();
        match self.repeat(key, &budget, count_down, told).await? {
            LatchCounted::Left(left) => Ok(left),
            LatchCounted::NotSet => Err(LockError::latch_not_set(key.clone())),
            LatchCounted::Untimely { .. } => Err(unavailable(Some(key), untimely())),
            LatchCounted::Conflict => Err(conflict(key)),
        }
    }

    /// How many are left, if the latch is set.
    pub(crate) async fn latch_count(&self, key: &LockKey) -> Result<Option<u32>, LockError> {
        self.check_latch(key)?;
        self.look_at_latch(key, &self.call_budget()).await
    }

    async fn look_at_latch(
        &self,
        key: &LockKey,
        budget: &Budget,
    ) -> Result<Option<u32>, LockError> {
        let look = |by, _| self.store.latch_look(key.clone(), by);
        match self.repeat(key, budget, look, |_| None).await? {
            LatchFound::Is(latch) => Ok(Some(latch.count)),
            LatchFound::NotSet => Ok(None),
            LatchFound::Conflict => Err(conflict(key)),
        }
    }

    /// Waits until the latch is open.
    pub(crate) async fn wait_for_latch(&self, key: &LockKey, wait: Wait) -> Result<(), LockError> {
        self.check_latch(key)?;
        let budget = Budget::new(self.clock.now(), wait, &self.defaults);
        if !budget.may_wait() {
            return match self.look_at_latch(key, &budget).await? {
                Some(0) => Ok(()),
                _ => Err(not_open(self.busy(key, &budget, None))),
            };
        }
        let mut waiter = LatchWaiter::enter(&self.latches, key, |watch| {
            let watcher = LatchWatcher::new(self, key.clone(), watch.clone());
            self.clock.spawn(watcher.run());
        });
        loop {
            let closed = self.closed.notified();
            if self.is_closing() {
                return Err(LockError::Shutdown);
            }
            let known = waiter.known();
            let time_left = async {
                let wake_at = match &known {
                    LatchAnswer::Over(_) => return Ok(()),
                    LatchAnswer::Unasked => self.check_unasked(&waiter, &budget)?,
                    LatchAnswer::Wait(failing) => {
                        let failing = failing.as_ref();
                        let wake_at = self.check_latch_time(&waiter, &budget, failing).await;
                        wake_at.map_err(not_open)?
                    }
                };
                let _ = self.clock.by(wake_at, waiter.wait_for_change()).await;
                Ok(())
            };
            let waited = tokio::select! {
                biased;
                () = closed => Ok(()),
                waited = time_left => waited,
            };
            // It may have opened while the store was asked for a sign of life.
            match (known, waited) {
                (LatchAnswer::Over(result), _) => return result,
                (_, Ok(())) => {}
                (_, Err(error)) => {
                    return match waiter.known() {
                        LatchAnswer::Over(result) => result,
                        _ => Err(error),
                    };
                }
            }
        }
    }

    fn check_latch(&self, key: &LockKey) -> Result<(), LockError> {
        self.check_key_and_client(key)?;
        self.check_wish(Wish::Latch)
    }

    fn latch_call(&self, key: &LockKey) -> Result<LatchCall, LockError> {
        self.check_latch(key)?;
        Ok(LatchCall::new(key.clone(), self.next_owner(), None))
    }

    fn call_budget(&self) -> Budget {
        let wait = Wait::For(self.defaults.wait.min(CALL_REPEATED));
        Budget::new(self.clock.now(), wait, &self.defaults)
    }

    /// One call. Its command is sent again, under the same owner token, as long as that may help.
    /// The command is given the store's time at its sending. If the store refused that time, `told`
    /// is the time that it said.
    async fn repeat<'s, T>(
        &self,
        key: &LockKey,
        budget: &Budget,
        command: impl Fn(Instant, Option<u64>) -> StoreFuture<'s, T>,
        told: impl Fn(&T) -> Option<u64>,
    ) -> Result<T, LockError> {
        let _active = Active::enter(&*self.active);
        let waits = budget.latest_end(None);
        let mut retry = Retry::default();
        let mut refused = false;
        loop {
            let gives_up = budget.cut_by_silence(waits, self.silent_since());
            let closed = self.closed.notified();
            if self.is_closing() {
                return Err(LockError::Shutdown);
            }
            let sent = self.clock.now();
            let by = budget.command_by(sent, gives_up);
            let result = command(by, self.store_time.at(sent)).await;
            self.liveness.note_by(sent, by, &result);
            let now = self.clock.now();
            let refused_before = std::mem::take(&mut refused);
            let failure = match result.map(|answer| answer.value) {
                Ok(reply) => {
                    let Some(store_time) = told(&reply) else {
                        return Ok(reply);
                    };
                    self.store_time.note(store_time, now);
                    refused = true;
                    if !refused_before && now < gives_up {
                        continue;
                    }
                    untimely()
                }
                Err(failure) => failure.error,
            };
            // The last one has a whole command's time.
            let last = gives_up.checked_sub(self.defaults.command_timeout);
            let last = last.filter(|last| *last > now);
            let Some(last) = last.filter(|_| failure.kind().is_transient()) else {
                return Err(unavailable(Some(key), failure));
            };
            let again = retry.again_at(now).min(last);
            tokio::select! {
                biased;
                () = closed => {}
                () = self.clock.sleep_until(again) => {}
            }
            // After a long time without a poll, the store does not remember the call any more.
            if self.clock.now() >= gives_up {
                return Err(unavailable(Some(key), failure));
            }
        }
    }
}

/// What is said of a lock that somebody else has, said of a latch.
fn not_open(error: LockError) -> LockError {
    match error {
        LockError::Busy { key, waited, .. } => LockError::LatchClosed { key, waited },
        other => other,
    }
}

fn conflict(key: &LockKey) -> LockError {
    LockError::key_conflict(key.clone(), KeyKind::Unknown)
}

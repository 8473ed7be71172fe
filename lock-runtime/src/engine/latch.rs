//! Count-down latches: calls that are repeated until the store has answered, and the wait.

mod board;
pub(super) mod room;
mod watcher;

use std::time::Duration;

use lock_store::{LatchRequest, LatchVerb, Latched, LockKey, StoreError, StoreErrorKind, Wish};

use self::room::Word;
use self::watcher::Watcher;
use super::Engine;
use super::background::active::Active;
use super::errors::unavailable;
use super::timing::{Budget, Retry};
use crate::config::{CALL_REPEATED, Wait};
use crate::error::{LockError, LostReason};

impl Engine {
    /// Sets the latch. True if this call did.
    pub(crate) async fn set_latch(
        &self,
        key: &LockKey,
        count: u32,
        ttl: Duration,
    ) -> Result<bool, LockError> {
        match self.call(key, LatchVerb::Set { count, ttl }).await? {
            Latched::Set(set) => Ok(set),
            other => Err(misunderstood(key, other)),
        }
    }

    /// Counts down by one. How many are left.
    pub(crate) async fn count_down(&self, key: &LockKey) -> Result<u32, LockError> {
        match self.call(key, LatchVerb::CountDown).await? {
            Latched::Counted(left) => Ok(left),
            Latched::NotSet => Err(LockError::Lost {
                key: key.clone(),
                reason: LostReason::NotSet,
            }),
            other => Err(misunderstood(key, other)),
        }
    }

    /// How many are left, if the latch is set.
    pub(crate) async fn latch_count(&self, key: &LockKey) -> Result<Option<u32>, LockError> {
        let reply = self.call(key, LatchVerb::Look).await?;
        count(key, reply)
    }

    /// Waits until the latch is open.
    pub(crate) async fn wait_for_latch(&self, key: &LockKey, wait: Wait) -> Result<(), LockError> {
        self.check(key)?;
        self.can(Wish::Latch)?;
        let budget = Budget::new(self.clock.now(), wait, &self.defaults);
        if !budget.may_wait() {
            let reply = self.repeat(key, LatchVerb::Look, &budget).await?;
            return match count(key, reply)? {
                Some(0) => Ok(()),
                _ => Err(self.busy(key, &budget)),
            };
        }
        let mut visitor = self.latches.enter(key, |room| {
            let watcher = Watcher::new(self, key.clone(), room.clone());
            self.clock.spawn(watcher.run());
        });
        loop {
            let closed = self.closed.notified();
            if self.is_closing() {
                return Err(LockError::Shutdown);
            }
            let word = visitor.word();
            let patience = async {
                let wake_at = match &word {
                    Word::Over(_) => return None,
                    Word::Unasked => {
                        let gives_up = budget.gives_up(self.liveness.answered());
                        if self.clock.now() >= gives_up {
                            let failure = self.liveness.last_failure(budget.started);
                            return Some(unavailable(Some(key), failure));
                        }
                        gives_up
                    }
                    Word::Wait(failing) => {
                        let failing = failing.as_ref().map(|(since, error)| (*since, error));
                        let error = self.time_is_up(key, &budget, failing, false).await;
                        if error.is_some() {
                            return error;
                        }
                        self.wake_at(&budget, None, failing)
                    }
                };
                let _ = self.clock.by(wake_at, visitor.changed()).await;
                None
            };
            let error = tokio::select! {
                biased;
                () = closed => None,
                error = patience => error,
            };
            // It may have opened while the store was asked for a sign of life.
            match (word, error) {
                (Word::Over(result), _) => return result,
                (_, None) => {}
                (_, Some(error)) => {
                    return match visitor.word() {
                        Word::Over(result) => result,
                        _ => Err(error),
                    };
                }
            }
        }
    }

    async fn call(&self, key: &LockKey, verb: LatchVerb) -> Result<Latched, LockError> {
        self.check(key)?;
        self.can(Wish::Latch)?;
        let wait = Wait::For(self.defaults.wait.min(CALL_REPEATED));
        let budget = Budget::new(self.clock.now(), wait, &self.defaults);
        self.repeat(key, verb, &budget).await
    }

    /// One call: its command is sent again, under the same owner token, as long as that may help.
    async fn repeat(
        &self,
        key: &LockKey,
        verb: LatchVerb,
        budget: &Budget,
    ) -> Result<Latched, LockError> {
        let _active = Active::enter(&*self.active);
        let request = LatchRequest {
            key: key.clone(),
            owner: self.next_owner(),
            verb,
        };
        let gives_up = budget.gives_up(None);
        let mut retry = Retry::default();
        loop {
            let closed = self.closed.notified();
            if self.is_closing() {
                return Err(LockError::Shutdown);
            }
            let sent = self.clock.now();
            let by = budget.command_by(sent, None);
            let result = self.store.latch(request.clone(), by).await;
            self.liveness.note(sent, &result);
            let failure = match result.map(|answer| answer.value) {
                Ok(Latched::Conflict) => return Err(LockError::KeyConflict { key: key.clone() }),
                Ok(reply) => return Ok(reply),
                Err(failure) => failure.error,
            };
            // The last one has a whole command's time.
            let now = self.clock.now();
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
        }
    }
}

fn count(key: &LockKey, reply: Latched) -> Result<Option<u32>, LockError> {
    match reply {
        Latched::Is(latch) => Ok(Some(latch.count)),
        Latched::NotSet => Ok(None),
        other => Err(misunderstood(key, other)),
    }
}

/// A reply to another question than was asked, which no store gives.
fn misunderstood(key: &LockKey, reply: Latched) -> LockError {
    let text = format!("it answered {reply:?} to another question");
    unavailable(Some(key), StoreError::new(StoreErrorKind::Refused, text))
}

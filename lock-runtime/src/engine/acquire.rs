//! One acquisition, from the request to what the caller gets.

use std::sync::Arc;
use std::time::Instant;

use lock_store::{LockKey, Wish};

use super::Engine;
use super::attempt::Attempt;
use super::hold::{Grant, Hold, Parts};
use super::scope::{self, Lend, Loan};
use super::time::Budget;
use crate::config::Resolved;
use crate::error::LockError;

/// What a request ends with: a hold of its own, or a share of the one its call chain has.
#[derive(Debug)]
pub(crate) enum Held {
    Own(Arc<Hold>),
    Shared(Arc<Hold>, Loan, Lend),
}

impl Engine {
    /// Takes one key, or several at once.
    pub(crate) async fn acquire(
        &self,
        keys: &[LockKey],
        options: &Resolved,
    ) -> Result<Held, LockError> {
        let [first, more @ ..] = keys else {
            return Err(LockError::config(
                "a request for several locks names none; give it at least one key",
            ));
        };
        keys.iter().try_for_each(|key| self.check(key))?;
        self.check_wishes(options)?;
        let now = self.clock.now();
        let budget = Budget::new(now, options.wait, &self.defaults);
        if let Some(frame) = keys.iter().find_map(|key| scope::enclosing(self.id, key)) {
            // Boxed, like everything rare: every waiting task has room for the largest of what it may wait for.
            return Box::pin(self.share(&frame, keys, options, budget)).await;
        }
        let hold = if more.is_empty() {
            let mut attempt = Attempt::new(self, first.clone(), options, budget);
            if budget.may_wait() {
                attempt.wait(now).await
            } else {
                attempt.once(now).await
            }
        } else {
            Box::pin(self.acquire_all(keys, options, budget)).await
        };
        Ok(Held::Own(hold?))
    }

    /// What was granted, watched from now on.
    pub(super) fn begin(
        &self,
        parts: Parts,
        now: Instant,
        options: &Resolved,
        grant: Grant,
        renew_at: Option<Instant>,
    ) -> Arc<Hold> {
        let hold = Arc::new(Hold::new(parts, now, options, grant, self.clock.clone()));
        self.watchdog.watch(Arc::clone(&hold), renew_at);
        hold
    }

    /// Refuses what the store can't do.
    fn check_wishes(&self, options: &Resolved) -> Result<(), LockError> {
        self.can(Wish::Lease(options.lease))?;
        self.can(Wish::Kept(options.hold_at_least))?;
        // Shares are fair by themselves, and why they can't be had says more.
        match (options.share, options.fair) {
            (Some(_), _) => self.can(Wish::Shares),
            (None, true) => self.can(Wish::Fair),
            (None, false) => Ok(()),
        }
    }

    pub(super) fn can(&self, wish: Wish) -> Result<(), LockError> {
        match self.store.refuses(wish) {
            Some(reason) => Err(LockError::config(reason)),
            None => Ok(()),
        }
    }

    pub(super) fn busy(&self, key: &LockKey, budget: &Budget) -> LockError {
        let waited = self.clock.now().saturating_duration_since(budget.started);
        LockError::Busy {
            key: key.clone(),
            waited,
        }
    }
}

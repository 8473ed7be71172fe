//! One acquisition, from the request to what the caller gets.
//!
//! Each key has an acquire task (`task`): it waits for the key (`one`) or tries once (`once`),
//! sends the commands (`command`) and makes a hold of its grant (`grant`). A request for several
//! keys takes all or none (`several`). All of it is observed (`observed_request`).

mod command;
mod foreign;
mod giving_up;
mod grant;
mod long_wait;
mod observed_request;
mod once;
mod one;
mod several;
mod task;

use std::time::Duration;

use lock_store::{LockKey, Permits, Wish};

use self::observed_request::ObservedRequest;
use self::task::AcquireTask;
use super::reentrancy::{Got, Held, enclosing};
use super::timing::Budget;
use super::{Engine, check_key};
use crate::config::Resolved;
use crate::error::LockError;

impl Engine {
    /// Takes one key, or several at once.
    // An `async fn` would have room for its arguments twice.
    pub(crate) fn acquire<'e>(
        &'e self,
        keys: &'e [LockKey],
        options: &'e Resolved,
    ) -> impl Future<Output = Result<Got, LockError>> + Send + 'e {
        let request = ObservedRequest::begin(self, keys, options);
        async move {
            let result = request.get().await;
            request.end(result)
        }
    }

    /// Refuses a lease that the store can't keep.
    pub(crate) fn can_lease(
        &self,
        lease: Duration,
        permits: Option<Permits>,
    ) -> Result<(), LockError> {
        self.can(Wish::Lease(lease))?;
        match permits {
            Some(permits) if permits.is_read_write() => self.can(Wish::ReadWriteLease(lease)),
            _ => Ok(()),
        }
    }

    /// Refuses what the store can't do.
    fn check_wishes(&self, options: &Resolved) -> Result<(), LockError> {
        self.can_lease(options.lease, options.permits)?;
        self.can(Wish::Kept(options.hold_at_least))?;
        if options.permits.is_some_and(Permits::is_read_write) {
            self.can(Wish::ReadWriteLease(options.hold_at_least))?;
        }
        match (options.fenced, options.permits) {
            (true, None) => self.can(Wish::Fencing)?,
            (true, Some(_)) => self.can(Wish::FencedShares)?,
            (false, _) => {}
        }
        // Shares are fair by themselves, and why they can't be had says more.
        match (options.permits, options.fair) {
            (Some(_), _) => self.can(Wish::Shares),
            (None, true) => self.can(Wish::Fair),
            (None, false) => Ok(()),
        }
    }
}

impl ObservedRequest<'_> {
    async fn get(&self) -> Result<Held, LockError> {
        let [first, more @ ..] = self.keys else {
            return Err(LockError::config(
                "a request for several locks names none; give it at least one key",
            ));
        };
        self.keys.iter().try_for_each(check_key)?;
        self.engine.check_client()?;
        self.engine.check_wishes(self.options)?;
        let (lease, timeout) = (self.options.lease, self.engine.defaults.command_timeout);
        self.engine.short_lease.note(self.keys, lease, timeout);
        self.engine.note_views(self.keys);
        let budget = Budget::new(self.started, self.options.wait, &self.engine.defaults);
        let (engine, queued) = (self.engine, &self.was_queued);
        let mut keys = self.keys.iter();
        let outer = keys.find_map(|key| enclosing(engine.id(), key));
        if let Some(frame) = outer {
            // Boxed, like everything rare: every waiting task has room for the largest of what it
            // may wait for.
            let nested = engine.acquire_nested(&frame, self.keys, self.options, budget);
            return Box::pin(nested).await;
        }
        let hold = if more.is_empty() {
            let mut task = AcquireTask::new(engine, first.clone(), self.options, budget, queued);
            if budget.may_wait() {
                task.wait(self.started).await
            } else {
                task.once(self.started).await
            }
        } else {
            Box::pin(engine.acquire_several(self.keys, self.options, budget, queued)).await
        };
        Ok(Held::Own(hold?))
    }
}

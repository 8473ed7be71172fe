//! One acquisition, from the request to what the caller gets.
//!
//! Each key has an acquire task (`task`): it waits for the key (`waiting`) or tries once
//! (`try_once`), sends the commands (`command`) and makes a hold of its grant (`grant`). A request
//! for several keys takes all or none (`several`). All of it is observed (`observed_request`).
//!
//! Futures of what is rare are boxed, here and for latches: a waiting task has room for the largest
//! of what it may wait for.

mod command;
pub(super) mod foreign;
mod grant;
mod lock_facts;
mod long_wait;
mod observed_request;
mod several;
mod task;
mod try_once;
mod waiting;

use std::time::Duration;

use lock_store::{LockKey, Permits, Wish};

use self::observed_request::ObservedRequest;
use self::task::AcquireTask;
use super::reentrancy::{Got, OwnOrNested, enclosing};
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
            let result = Self::acquire_observed(&request).await;
            request.end(result)
        }
    }

    async fn acquire_observed(request: &ObservedRequest<'_>) -> Result<OwnOrNested, LockError> {
        let [first, more @ ..] = request.keys else {
            return Err(LockError::config(
                "a request for several locks names none; give it at least one key",
            ));
        };
        request.keys.iter().try_for_each(check_key)?;
        let (engine, options) = (request.engine, request.options);
        engine.check_client()?;
        engine.check_wishes(options)?;
        let (lease, timeout) = (options.lease, engine.defaults.command_timeout);
        engine.short_lease.note(request.keys, lease, timeout);
        engine.note_views(request.keys);
        let budget = Budget::new(request.started, options.wait, &engine.defaults);
        let mut keys = request.keys.iter();
        let outer = keys.find_map(|key| enclosing(engine.id(), key));
        if let Some(frame) = outer {
            let nested = engine.acquire_nested(&frame, request.keys, options, budget);
            return Box::pin(nested).await;
        }
        let hold = if more.is_empty() {
            let mut task = AcquireTask::new(engine, first.clone(), options, budget, request);
            if budget.may_wait() {
                task.wait(request.started).await
            } else {
                task.try_once(request.started).await
            }
        } else {
            Box::pin(engine.acquire_several(request.keys, options, budget, request)).await
        };
        Ok(OwnOrNested::Own(hold?))
    }

    /// Refuses a lease that the store can't keep.
    pub(crate) fn check_lease(
        &self,
        lease: Duration,
        permits: Option<Permits>,
    ) -> Result<(), LockError> {
        self.check_wish(Wish::Lease(lease))?;
        match permits {
            Some(permits) if permits.is_read_write() => {
                self.check_wish(Wish::ReadWriteLease(lease))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what the store can't do.
    fn check_wishes(&self, options: &Resolved) -> Result<(), LockError> {
        self.check_lease(options.lease, options.permits)?;
        self.check_wish(Wish::Kept(options.hold_at_least))?;
        if options.permits.is_some_and(Permits::is_read_write) {
            self.check_wish(Wish::ReadWriteLease(options.hold_at_least))?;
        }
        match (options.fenced, options.permits) {
            (true, None) => self.check_wish(Wish::Fencing)?,
            (true, Some(_)) => self.check_wish(Wish::FencedShares)?,
            (false, _) => {}
        }
        // Shares are always fair. If they are not available, that reason helps the user more than
        // `fair`.
        match (options.permits, options.fair) {
            (Some(_), _) => self.check_wish(Wish::Shares),
            (None, true) => self.check_wish(Wish::Fair),
            (None, false) => Ok(()),
        }
    }
}

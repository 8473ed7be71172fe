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
mod state;
mod task;

use lock_store::{Instant, LockKey, Wish};

use self::observed_request::ObservedRequest;
use self::task::AcquireTask;
use super::reentrancy::{Got, Held, enclosing};
use super::timing::Budget;
use super::{Engine, check_key};
use crate::config::Resolved;
use crate::error::LockError;
use crate::observe::GrantedBy;

impl Engine {
    /// Takes one key, or several at once.
    pub(crate) async fn acquire(
        &self,
        keys: &[LockKey],
        options: &Resolved,
    ) -> Result<Got, LockError> {
        let request = ObservedRequest::asks(self, keys, options.permits);
        match self.get(keys, options, request.started).await {
            Ok(held) => {
                let (how, since) = match &held {
                    Held::Own(hold) => (hold.how, hold.since),
                    Held::Nested(..) => (GrantedBy::Nested, self.clock.now()),
                };
                let waited = request.granted(how, since);
                Ok(Got {
                    held,
                    since,
                    waited,
                })
            }
            Err(error) => {
                request.failed(&error);
                Err(error)
            }
        }
    }

    async fn get(
        &self,
        keys: &[LockKey],
        options: &Resolved,
        now: Instant,
    ) -> Result<Held, LockError> {
        let [first, more @ ..] = keys else {
            return Err(LockError::config(
                "a request for several locks names none; give it at least one key",
            ));
        };
        keys.iter().try_for_each(check_key)?;
        self.check_client()?;
        self.check_wishes(options)?;
        let budget = Budget::new(now, options.wait, &self.defaults);
        if let Some(frame) = keys.iter().find_map(|key| enclosing(self.id(), key)) {
            // Boxed, like everything rare: every waiting task has room for the largest of what it
            // may wait for.
            return Box::pin(self.acquire_nested(&frame, keys, options, budget)).await;
        }
        let hold = if more.is_empty() {
            let mut task = AcquireTask::new(self, first.clone(), options, budget);
            if budget.may_wait() {
                task.wait(now).await
            } else {
                task.once(now).await
            }
        } else {
            Box::pin(self.acquire_several(keys, options, budget)).await
        };
        Ok(Held::Own(hold?))
    }

    /// Refuses what the store can't do.
    fn check_wishes(&self, options: &Resolved) -> Result<(), LockError> {
        self.can(Wish::Lease(options.lease))?;
        self.can(Wish::Kept(options.hold_at_least))?;
        // Shares are fair by themselves, and why they can't be had says more.
        match (options.permits, options.fair) {
            (Some(_), _) => self.can(Wish::Shares),
            (None, true) => self.can(Wish::Fair),
            (None, false) => Ok(()),
        }
    }
}

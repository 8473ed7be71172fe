//! What a request that waits for a latch brings to the decision when it stops, and with which error
//! (`liveness/busy_or_unavailable`). One task looks at the latch for all of them, so a failure is
//! one of its looks.

use lock_store::Instant;

use super::waiter::LatchWaiter;
use crate::engine::Engine;
use crate::engine::errors::unavailable;
use crate::engine::liveness::busy_or_unavailable::{Facts, judge};
use crate::engine::liveness::{Failing, Said, is_silence};
use crate::engine::timing::Budget;
use crate::error::LockError;

impl Engine {
    fn latch_facts<'f>(
        &self,
        waiter: &LatchWaiter,
        budget: &'f Budget,
        failing: Option<&Failing>,
    ) -> Facts<'f> {
        let silent = failing.filter(|failing| is_silence(&failing.error));
        let silent = silent.map(|failing| failing.since);
        let earlier = self.silent_since().filter(|_| silent.is_some());
        let failing = failing.map(|failing| Failing {
            // A later waiter has as much patience.
            since: failing.since.max(budget.started),
            error: failing.error.clone(),
        });
        Facts {
            budget,
            answered: waiter.liveness().answered(),
            silent_since: silent.into_iter().chain(earlier).min(),
            failing,
            failed_before: false,
            unusable: None,
        }
    }

    /// Ends a wait for which the store was not asked in its time, or has not answered. When to wake
    /// up.
    pub(super) fn check_unasked(
        &self,
        waiter: &LatchWaiter,
        budget: &Budget,
    ) -> Result<Instant, LockError> {
        let gives_up = self.latch_facts(waiter, budget, None).give_up_at();
        if self.clock.now() < gives_up {
            return Ok(gives_up);
        }
        let failure = waiter.liveness().last_failure(budget.started);
        Err(unavailable(Some(waiter.key()), failure))
    }

    /// Ends a wait whose time is up: busy only if a look was lately answered. When to wake up.
    pub(super) async fn check_latch_time(
        &self,
        waiter: &LatchWaiter,
        budget: &Budget,
        failing: Option<&Failing>,
    ) -> Result<Instant, LockError> {
        let now = self.clock.now();
        let facts = self.latch_facts(waiter, budget, failing);
        let last_failure = || waiter.liveness().last_failure(budget.started);
        if let Some(error) = facts.overdue(now, last_failure) {
            return Err(unavailable(Some(waiter.key()), error));
        }
        let since = facts.evidence_from();
        if now >= since {
            let said = match failing {
                Some(failing) => Said::Failing(failing.error.clone()),
                None => {
                    let by = budget.last_answer_by(now);
                    let liveness = waiter.liveness();
                    match Box::pin(liveness.check(&self.store, waiter.key(), since, by)).await {
                        Ok(()) => Said::Alive {
                            refused_before: None,
                        },
                        Err(error) => Said::Failing(error),
                    }
                }
            };
            // A look has found it closed.
            let verdict = judge(budget, self.clock.now(), said, true);
            self.check_verdict(verdict, waiter.key(), budget, || None)?;
        }
        let facts = self.latch_facts(waiter, budget, failing);
        Ok(facts.wake_at(self.clock.now(), None))
    }
}

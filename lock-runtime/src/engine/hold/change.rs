//! What changes a hold while it lasts: a longer lease, by the watchdog or by its caller's wish; and
//! a writer that becomes a reader.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Instant, Permits, Released, Renewal};

use super::Hold;
use super::part::RenewedParts;
use crate::config::check_lease;
use crate::engine::errors::{unanswered, unavailable};
use crate::engine::{Engine, timing};
use crate::error::{LockError, LostReason};

impl Hold {
    /// The lease to ask for. From then on the store may keep the hold for that long, whatever is
    /// heard of it.
    pub(crate) fn renewals(&self, lease: Duration) -> Vec<Renewal> {
        let until = self.clock.now() + lease;
        let mut state = self.state.lock();
        state.stored_until = state.stored_until.max(until);
        state.renewing = true;
        if let Some(tenure) = &mut state.tenure {
            tenure.extend_to(until);
        }
        drop(state);
        let renewal = |part| Renewal::new(self.claim(part), lease);
        self.parts().iter().map(renewal).collect()
    }

    /// Moves the deadline after a renewal that was sent then. `until` is the store's word for how
    /// long the hold can be trusted. With it, the deadline may move to an earlier time, and without
    /// it only to a later one. A hold that was lost meanwhile stays lost.
    pub(crate) fn prolong(&self, sent: Instant, lease: Duration, until: Option<Instant>) {
        if self.loss().is_none() || self.runs_on() {
            let deadline = timing::deadline(sent, lease);
            let mut state = self.state.lock();
            if deadline >= state.deadline {
                (state.deadline, state.asked) = (deadline, lease);
            }
            // Also of what was asked for before, and for longer.
            state.deadline = until.map_or(state.deadline, |until| until.min(state.deadline));
            state.renewing = false;
            if let Some(tenure) = &mut state.tenure {
                tenure.note_allowed(timing::allowed(sent, lease, until));
            }
        }
    }

    /// By the store's word, the hold can be trusted until then at most.
    pub(crate) fn trust_at_most(&self, until: Instant) {
        let mut state = self.state.lock();
        state.deadline = until.min(state.deadline);
    }

    fn max_hold_ends(&self) -> Option<Instant> {
        self.state.lock().ends.filter(|_| self.renew)
    }

    /// Its fixed lease was extended.
    pub(super) fn end_at_least(&self, until: Instant) {
        let mut state = self.state.lock();
        state.ends = state.ends.max(Some(until));
    }
}

impl Engine {
    /// Lets a hold last at least `lease` from now.
    pub(crate) async fn extend(&self, hold: &Arc<Hold>, lease: Duration) -> Result<(), LockError> {
        check_lease("lease", lease)?;
        self.check_process()?;
        self.check_lease(lease, hold.permits())?;
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        if hold.is_released() {
            return Err(hold.lost_error(LostReason::Gone));
        }
        let sent = self.clock.now();
        if hold.max_hold_ends().is_some_and(|ends| sent + lease > ends) {
            return Err(LockError::config(format!(
                "an extension by {lease:?} would outlive the `max_hold` of this hold; \
                 extend by less, or allow a longer `max_hold`"
            )));
        }
        let renewals = hold.renewals(lease);
        let result = self.store.renew(renewals, self.command_by()).await;
        self.liveness.note(sent, &result);
        let answer = result.map_err(|failure| unavailable(Some(hold.key()), failure.error))?;
        let replies = RenewedParts::of(hold.parts(), &mut answer.value.into_iter());
        let until = match replies {
            RenewedParts::All { until } => until,
            RenewedParts::Unanswered { until } => {
                if let Some(until) = until {
                    hold.trust_at_most(until);
                    self.watchdog.renew_now(Arc::clone(hold));
                    if let Some(reason) = hold.loss() {
                        return Err(hold.lost_error(reason));
                    }
                }
                return Err(unavailable(Some(hold.key()), unanswered()));
            }
            RenewedParts::Gone => {
                hold.lose(LostReason::Gone);
                self.observed.record_lost(hold, self.clock.now());
                self.watchdog.forget(hold);
                None
            }
        };
        hold.prolong(sent, lease, until);
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        if !hold.renew {
            hold.end_at_least(sent + lease);
        }
        // The deadline has moved, perhaps to an earlier time. Less may have been asked for than a
        // renewal asks for.
        let of_lease = lease.min(hold.lease);
        let next = (hold.renew).then(|| timing::renewal_at(sent, of_lease, until));
        self.watchdog.watch(Arc::clone(hold), next);
        Ok(())
    }

    /// Turns a writer into a reader.
    pub(crate) async fn downgrade(&self, hold: &Hold) -> Result<(), LockError> {
        self.check_process()?;
        if hold
            .permits()
            .is_none_or(|permits| permits.of != Permits::READ_WRITE)
        {
            return Err(LockError::config(
                "only the guard of a write lock can be downgraded; \
                 this is an exclusive lock or a semaphore",
            ));
        }
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        let part = &hold.parts()[0];
        let claim = hold.claim(part);
        // From here on the store may have it as a reader.
        hold.state.lock().permits = Some(Permits::READ);
        let sent = self.clock.now();
        let result = self.store.shrink(claim, 1, self.command_by()).await;
        self.liveness.note(sent, &result);
        let answer = result.map_err(|failure| unavailable(Some(&part.key), failure.error))?;
        if answer.value == Released::NotHeld {
            hold.lose(LostReason::Gone);
            self.observed.record_lost(hold, self.clock.now());
            return Err(hold.lost_error(LostReason::Gone));
        }
        Ok(())
    }
}

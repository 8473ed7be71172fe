//! One command of an acquire task, and what its reply changes.

use std::sync::Arc;

use lock_store::{
    Acquired, Busy, Granted, Holder, Instant, Link, Queue, StoreError, StoreErrorKind,
};

use super::task::AcquireTask;
use crate::engine::errors::{no_token, too_late, unavailable};
use crate::engine::fencing::window::{self, TokenWindow};
use crate::engine::hold::Hold;
use crate::engine::local_queue::{Asked, Signal, Waiter};
use crate::engine::timing;
use crate::error::{KeyKind, LockError};

/// What one command came to.
pub(super) enum Step {
    Held(Arc<Hold>),
    /// Recheck at this time, unless called before.
    Busy {
        recheck_at: Instant,
        /// Who has it, if the store has said so.
        holder: Option<Holder>,
    },
    Failed(StoreError),
    /// Granted, for a lease that was over when the answer came, or without a token.
    Unusable(StoreError),
    /// No answer in the little time that the budget had left, which says nothing about the store.
    Cut,
    /// Nobody polled it, and what it was granted is given back.
    PassedOver,
}

impl AcquireTask<'_> {
    /// From now on, commands ask for a place in the store's queue, and grants are heard.
    pub(super) fn join_queue(&mut self, signal: &Arc<Signal>) {
        if self.request.queue != Queue::Join {
            self.request.queue = Queue::Join;
            let now = self.engine.clock.now();
            let wait = self
                .budget
                .ends()
                .map(|ends| ends.saturating_duration_since(now));
            self.request.wait = wait;
        }
        if !self.expecting {
            let owner = self.request.claim.owner;
            self.engine.grants.register(owner, signal);
            self.expecting = true;
        }
    }

    /// A grant that is heard over another link is old, or told over this one as well.
    fn hear_over(&mut self, link: Option<Link>) {
        if self.expecting && self.over != link {
            self.over = link;
            let owner = self.request.claim.owner;
            self.engine.grants.expect_over(owner, link);
        }
    }

    /// Sends one acquire, now.
    pub(super) async fn send(
        &mut self,
        waiter: Option<&Waiter>,
        sent: Instant,
    ) -> Result<Step, LockError> {
        let engine = self.engine;
        let gives_up = self.gives_up_at(waiter);
        let by = self.budget.command_by(sent, gives_up).max(sent);
        // Known before it is sent, so that an undo can go the same way.
        let (key, queue) = (&self.request.claim.key, self.request.queue);
        self.request.via = engine.store.link_of(key, queue);
        self.request.patience = Some(gives_up);
        self.in_flight = Some((sent, self.request.via));
        if let Some(waiter) = waiter {
            let (via, tokens, wait) = (self.request.via, self.request.tokens, self.request.wait);
            waiter.signal.asks(by, Asked { via, tokens, wait });
        }
        if self.over != Some(self.request.via) {
            self.hear_over(None);
        }
        let answer = engine.store.acquire(self.request.clone(), by);
        let closes = || engine.is_closing() && engine.clock.now() >= by;
        let result = match waiter {
            Some(waiter) => waiter.signal.polls(answer, closes).await,
            None => Some(answer.await),
        };
        let Some(result) = result else {
            return Err(LockError::Shutdown);
        };
        self.in_flight = None;
        if let Err(failure) = &result
            && failure.error.kind() == StoreErrorKind::Timeout
            && self.budget.is_cut(sent, by)
        {
            self.note_unknown(failure, sent);
            self.give_up_previous();
            return Ok(Step::Cut);
        }
        engine.liveness.note(sent, &result);
        if let Some(waiter) = waiter
            && !waiter.signal.was_passed_over()
        {
            let looked = queue == Queue::Join && self.confirmed.is_some();
            let timeout = engine.defaults.command_timeout;
            let stood_still = timing::stood_still(sent, engine.clock.now(), timeout);
            waiter.liveness().note(sent, stood_still, looked, &result);
        }
        if result.is_ok() {
            // Whatever the reply, the hold of the handoff has ended.
            self.request.instead_of = None;
        }
        let link = result.as_ref().map(|answer| answer.link).ok();
        match result.map(|answer| answer.value) {
            Ok(Acquired::Granted(granted)) => {
                let Granted {
                    token,
                    reserved,
                    limit,
                    until,
                    ..
                } = granted;
                self.present = true;
                self.met(limit);
                self.wrote(link, sent);
                if engine.is_closing() {
                    return Err(LockError::Shutdown);
                }
                if waiter.is_some_and(|waiter| waiter.signal.was_passed_over()) {
                    return Ok(Step::PassedOver);
                }
                let deadline = timing::trusted_until(sent, self.request.lease, until);
                let now = engine.clock.now();
                if now >= deadline {
                    return Ok(Step::Unusable(too_late(self.request.lease)));
                }
                if window::is_missing(self.options, token) {
                    return Ok(Step::Unusable(no_token()));
                }
                if let Err(error) = self.check_rises(token, reserved) {
                    return Ok(Step::Unusable(error));
                }
                // From here on the grant is used, and nobody gives it back.
                if waiter.is_some_and(|waiter| !waiter.signal.claim()) {
                    return Ok(Step::PassedOver);
                }
                let tokens = TokenWindow::new(token, reserved);
                let until = (deadline, until);
                let hold = self.granted(waiter, now, sent, until, (token, tokens));
                Ok(Step::Held(hold))
            }
            Ok(Acquired::Busy(busy)) => {
                let Busy {
                    remaining,
                    queued,
                    holder,
                    limit,
                    look_in,
                    ..
                } = busy;
                self.met(limit);
                self.previous = None;
                self.present = queued;
                self.confirmed = link.filter(|_| queued).map(|link| (sent, link));
                if queued {
                    self.hear_over(link);
                }
                if queued && queue == Queue::Join {
                    self.wrote(link, sent);
                }
                let now = engine.clock.now();
                let recheck_at = timing::recheck_at(sent, now, remaining, look_in);
                Ok(Step::Busy { recheck_at, holder })
            }
            Ok(Acquired::Conflict) => {
                self.previous = None;
                // An earlier reply may have left a place in the store's queue.
                let key = self.request.claim.key.clone();
                Err(LockError::key_conflict(key, KeyKind::Unknown))
            }
            Err(failure) => {
                self.note_unknown(&failure, sent);
                self.give_up_previous();
                if failure.error.kind().is_transient() {
                    Ok(Step::Failed(failure.error))
                } else {
                    Err(unavailable(Some(&self.request.claim.key), failure.error))
                }
            }
        }
    }

    /// Others say another number of permits.
    fn met(&self, limit: Option<u32>) {
        let claim = &self.request.claim;
        if let (Some(theirs), Some(ours)) = (limit, claim.permits) {
            self.engine.other_limits.met(&claim.key, ours.of, theirs);
        }
    }

    /// Notes a command by which the store changed something: only the master does that.
    fn wrote(&self, link: Option<Link>, sent: Instant) {
        if let Some(link) = link {
            self.engine.grants.wrote(link, sent);
        }
    }
}

//! One command of an acquire task, and what its reply changes.

use std::sync::Arc;

use lock_store::{
    Acquired, Answer, Busy, Granted, Holder, Instant, Link, Queue, Replied, StoreError,
    StoreErrorKind,
};

use super::task::AcquireTask;
use crate::engine::errors::{no_token, too_late};
use crate::engine::fencing::window::{self, TokenWindow};
use crate::engine::hold::Hold;
use crate::engine::local_queue::{AskedStore, Signal, Waiter};
use crate::engine::timing;
use crate::error::{KeyKind, LockError};

pub(super) enum CommandOutcome {
    Held(Arc<Hold>),
    /// Recheck at this time, unless called before.
    Busy {
        recheck_at: Instant,
        /// Who has it, if the store has said so and not when to look again.
        holder: Option<Holder>,
    },
    Failed(StoreError),
    /// Granted, for a lease that was over when the answer came, or without a token.
    Unusable(StoreError),
    /// No answer in the little time that the budget had left, which says nothing about the store.
    Cut(StoreError),
    /// Nobody polled it, and what it was granted is given back.
    Skipped,
}

type AcquireResult = Replied<Acquired>;

impl AcquireTask<'_> {
    /// From now on, commands ask for a place in the store's queue, and grants are heard.
    pub(super) fn join_store_queue(&mut self, signal: &Arc<Signal>) {
        if self.request.queue != Queue::Join {
            self.request.queue = Queue::Join;
            let now = self.engine.clock.now();
            let ends = self.budget.end();
            self.request.wait = ends.map(|ends| ends.saturating_duration_since(now));
        }
        if !self.registered {
            let owner = self.request.claim.owner;
            self.engine.grants.register(owner, signal);
            self.registered = true;
        }
    }

    /// Accepts grants over this link only. One over another is old, or comes over this one too.
    fn expect_grants_over(&mut self, link: Option<Link>) {
        if self.registered && self.grant_link != link {
            self.grant_link = link;
            let owner = self.request.claim.owner;
            self.engine.grants.expect_over(owner, link);
        }
    }

    /// Sends one acquire, now.
    pub(super) async fn send(
        &mut self,
        waiter: Option<&Waiter>,
        sent: Instant,
    ) -> Result<CommandOutcome, LockError> {
        let (by, until) = self.note_sending(waiter, sent);
        let engine = self.engine;
        let answer = engine.store.acquire(self.request.clone(), until);
        let closes = || engine.is_closing() && engine.clock.now() >= by;
        let result = match waiter {
            Some(waiter) => waiter.signal.poll_answer(answer, closes).await,
            None => Some(answer.await),
        };
        let Some(result) = result else {
            return Err(LockError::Shutdown);
        };
        self.in_flight = None;
        let timed_out_early = self.timed_out_early(&result, sent, by);
        if !timed_out_early {
            self.note_liveness(waiter, &result, sent);
        }
        match result {
            Ok(answer) => self.interpret(waiter, answer, sent),
            Err(failure) => {
                self.note_unknown(&failure, sent);
                self.give_up_previous();
                match failure.error.kind().is_transient() {
                    _ if timed_out_early => Ok(CommandOutcome::Cut(failure.error)),
                    true => Ok(CommandOutcome::Failed(failure.error)),
                    false => Err(self.unavailable(failure.error)),
                }
            }
        }
    }

    /// Notes what is to be undone of a command that is sent now, and what may be heard meanwhile.
    /// Returns two deadlines: for a silent store, and for a slow one.
    fn note_sending(&mut self, waiter: Option<&Waiter>, sent: Instant) -> (Instant, Instant) {
        let gives_up = self.give_up_at(waiter);
        let by = self.budget.command_by(sent, gives_up).max(sent);
        // Known before it is sent, so that an undo can go the same way.
        let link = self.engine.store.link_of(&self.request.claim.key);
        self.in_flight = Some((sent, link));
        if let Some(waiter) = waiter {
            let (tokens, wait) = (self.request.tokens, self.request.wait);
            waiter
                .signal
                .note_asking(by, AskedStore { link, tokens, wait });
        }
        if self.grant_link != Some(link) {
            self.expect_grants_over(None);
        }
        match self.engine.capabilities.tells_slow {
            true => (by, gives_up.max(by)),
            false => (by, by),
        }
    }

    /// Whether a command had so little time that its silence says nothing about the store.
    fn timed_out_early(&self, result: &AcquireResult, sent: Instant, by: Instant) -> bool {
        let kind = result.as_ref().err().map(|failure| failure.error.kind());
        kind == Some(StoreErrorKind::Timeout) && self.budget.is_cut(sent, by)
    }

    /// Notes what a command says about the store, and about the key.
    fn note_liveness(&self, waiter: Option<&Waiter>, result: &AcquireResult, sent: Instant) {
        let engine = self.engine;
        engine.liveness.note(sent, result);
        if let Some(waiter) = waiter
            && !waiter.signal.was_skipped()
        {
            let had_place = self.request.queue == Queue::Join && self.confirmed.is_some();
            let timeout = engine.defaults.command_timeout;
            let stood_still = || timing::stood_still(sent, engine.clock.now(), timeout);
            waiter.liveness().note(sent, stood_still, had_place, result);
        }
    }

    fn interpret(
        &mut self,
        waiter: Option<&Waiter>,
        answer: Answer<Acquired>,
        sent: Instant,
    ) -> Result<CommandOutcome, LockError> {
        // Whatever the reply, the hold of the handoff has ended.
        self.request.instead_of = None;
        let link = answer.link;
        match answer.value {
            Acquired::Granted(granted) => {
                self.may_be_stored = true;
                self.note_limit(granted.limit);
                self.engine.grants.note_write(link, sent);
                match self.engine.is_closing() {
                    true => Err(LockError::Shutdown),
                    false => Ok(self.use_grant(waiter, granted, sent)),
                }
            }
            Acquired::Busy(busy) => Ok(self.accept_busy(&busy, link, sent)),
            Acquired::Conflict => {
                self.previous = None;
                // An earlier reply may have left a place in the store's queue.
                let key = self.request.claim.key.clone();
                Err(LockError::key_conflict(key, KeyKind::Unknown))
            }
        }
    }

    /// Makes a hold of a grant, if it can be used.
    fn use_grant(
        &mut self,
        waiter: Option<&Waiter>,
        granted: Granted,
        sent: Instant,
    ) -> CommandOutcome {
        let Granted {
            token,
            reserved,
            until,
            ..
        } = granted;
        if waiter.is_some_and(|waiter| waiter.signal.was_skipped()) {
            return CommandOutcome::Skipped;
        }
        let deadline = timing::trusted_until(sent, self.request.lease, until);
        let now = self.engine.clock.now();
        if now >= deadline {
            return CommandOutcome::Unusable(too_late(self.request.lease));
        }
        if window::is_missing(self.options, token) {
            return CommandOutcome::Unusable(no_token());
        }
        if let Err(error) = self.check_rises(token, reserved) {
            return CommandOutcome::Unusable(error);
        }
        // From here on the grant is used, and nobody gives it back.
        if waiter.is_some_and(|waiter| !waiter.signal.claim()) {
            return CommandOutcome::Skipped;
        }
        let tokens = TokenWindow::new(token, reserved);
        let until = (deadline, until);
        CommandOutcome::Held(self.accept_grant(waiter, now, sent, until, (token, tokens)))
    }

    /// Notes that the key is taken, and whether this request has a place in its queue. Returns when
    /// to ask again, and who has it.
    fn accept_busy(&mut self, busy: &Busy, link: Link, sent: Instant) -> CommandOutcome {
        self.note_limit(busy.limit);
        self.previous = None;
        self.may_be_stored = busy.queued;
        self.confirmed = busy.queued.then_some((sent, link));
        if busy.queued {
            self.expect_grants_over(Some(link));
        }
        if busy.queued && self.request.queue == Queue::Join {
            // The store has changed something: only the master does that.
            self.engine.grants.note_write(link, sent);
        }
        let now = self.engine.clock.now();
        CommandOutcome::Busy {
            recheck_at: timing::recheck_at(sent, now, busy.remaining, busy.look_in),
            holder: busy.holder.filter(|_| busy.look_in.is_none()),
        }
    }

    /// Others say another number of permits.
    fn note_limit(&self, limit: Option<u32>) {
        let claim = &self.request.claim;
        if let (Some(theirs), Some(ours)) = (limit, claim.permits) {
            self.engine
                .other_limits
                .warn_once(&claim.key, ours.of, theirs);
        }
    }
}

//! What a request goes on with: a hold that the store granted or handed over, or a handoff.

use std::sync::Arc;

use lock_store::{Instant, LockKey, StoreError, Trust};

use super::task::AcquireTask;
use crate::config::Resolved;
use crate::engine::fencing::rising::not_rising;
use crate::engine::fencing::window::{self, TokenWindow};
use crate::engine::hold::part::Part;
use crate::engine::hold::{Grant, Hold};
use crate::engine::local_queue::HeardGrant;
use crate::engine::local_queue::{Handoff, TakenOver, Tenure, Waiter};
use crate::engine::{Engine, timing};
use crate::observe::GrantedBy;
use crate::one_or_more::OneOrMore;

impl Engine {
    /// What was granted, watched from now on.
    pub(super) fn start_hold(
        &self,
        parts: OneOrMore<Part>,
        now: Instant,
        options: &Resolved,
        grant: Grant,
        renew_at: Option<Instant>,
    ) -> Arc<Hold> {
        let hold = Arc::new(Hold::new(parts, now, options, grant, self.clock.clone()));
        self.watchdog.watch(Arc::clone(&hold), renew_at);
        hold
    }

    /// Refuses a token that is not above those of earlier grants of an exclusive lock.
    pub(super) fn check_rises(
        &self,
        key: &LockKey,
        token: Option<u64>,
        reserved: u32,
    ) -> Result<(), StoreError> {
        let Some(token) = token else { return Ok(()) };
        let noted = self.last_tokens.note(key, token, reserved);
        noted.map_err(|before| not_rising(token, before))
    }
}

impl AcquireTask<'_> {
    /// Goes on with the hold of another task, if the store need not be asked.
    pub(super) fn take_over(&mut self, handoff: Handoff) -> Result<Arc<Hold>, Handoff> {
        let now = self.engine.clock.now();
        let limits = &self.engine.defaults;
        let taken = handoff.take_over(now, self.options, limits)?;
        let TakenOver {
            tenure,
            owner,
            token,
            deadline,
            renew_at,
        } = taken;
        let part = Part::new(self.request.claim.key.clone(), owner, token);
        let grant = self.grant(now, deadline, Some(tenure), GrantedBy::HandedOff);
        Ok(self.make_hold(part, now, grant, renew_at))
    }

    /// The next command ends the tenure, so that others have their turn first.
    pub(super) fn ask_instead_of(&mut self, handoff: Handoff) {
        self.request.instead_of = Some(handoff.owner());
        self.barge_no_more();
        self.previous = Some(handoff);
    }

    /// A hold that the store handed over, if it can be trusted without asking.
    pub(super) fn accept_hand_over(
        &mut self,
        waiter: &Waiter,
        granted: HeardGrant,
    ) -> Option<Arc<Hold>> {
        let HeardGrant {
            trust,
            token,
            after,
        } = granted;
        let (engine, now) = (self.engine, self.engine.clock.now());
        let deadline = match trust {
            Trust::Order(link) => {
                let (confirmed, _) = self.confirmed.filter(|(_, over)| *over == link)?;
                let confirmed = after.map_or(confirmed, |after| after.max(confirmed));
                timing::handed_over_deadline(now, confirmed, self.request.lease)?
            }
            Trust::Until(until) => timing::until_if_enough_left(now, until, self.request.lease)?,
            _ => return None,
        };
        if window::is_missing(self.options, token) || !engine.defaults.trusts_messages {
            return None;
        }
        // The message brings the first of the tokens that were asked for.
        let reserved = self.request.tokens;
        if self.check_rises(token, reserved).is_err() || !waiter.signal.claim() {
            return None;
        }
        // Its first lease is short: the watchdog asks for the whole one soon.
        let part = self.part(token);
        let tokens = TokenWindow::new(token, reserved);
        let tenure = self.tenure(Some(waiter), now, tokens, Some(deadline));
        let renew_at = timing::handed_over_renewal(now, deadline);
        let grant = self.grant(now, deadline, tenure, GrantedBy::HandedOver);
        Some(self.make_hold(part, now, grant, Some(renew_at)))
    }

    /// A hold that the store granted in its reply to a command sent at `sent`. `until` is what the
    /// store has said about the trust in it, if anything.
    pub(super) fn accept_grant(
        &mut self,
        waiter: Option<&Waiter>,
        now: Instant,
        sent: Instant,
        (deadline, until): (Instant, Option<Instant>),
        (token, tokens): (Option<u64>, TokenWindow),
    ) -> Arc<Hold> {
        let renew_at = timing::first_renewal(sent, self.options, until);
        let part = self.part(token);
        let mut tenure = self.tenure(waiter, now, tokens, None);
        if let Some(tenure) = &mut tenure {
            let lease = self.options.lease;
            tenure.extend_to(sent + lease);
            tenure.note_allowed(timing::allowed(sent, lease, until));
        }
        self.previous = None;
        let grant = self.grant(sent, deadline, tenure, GrantedBy::Store);
        self.make_hold(part, now, grant, renew_at)
    }

    /// Refuses a token that does not rise, of a lock of which each grant is another hold.
    pub(super) fn check_rises(&self, token: Option<u64>, reserved: u32) -> Result<(), StoreError> {
        let claim = &self.request.claim;
        match claim.permits {
            None => self.engine.check_rises(&claim.key, token, reserved),
            // Several who share a lock may learn of their tokens in any order.
            Some(_) => Ok(()),
        }
    }

    fn part(&self, token: Option<u64>) -> Part {
        let claim = &self.request.claim;
        Part::new(claim.key.clone(), claim.owner, token)
    }

    /// What may be handed off of a hold that the store has just granted.
    fn tenure(
        &self,
        waiter: Option<&Waiter>,
        now: Instant,
        tokens: TokenWindow,
        handed_until: Option<Instant>,
    ) -> Option<Box<Tenure>> {
        let (engine, claim) = (self.engine, &self.request.claim);
        let passes = claim.permits.is_none() && engine.defaults.local_handoffs > 0;
        passes.then(|| {
            let marker = match waiter {
                Some(waiter) => waiter.marker(),
                None => engine.local_queues.marker(&claim.key),
            };
            Tenure::new(claim.owner, now, handed_until, tokens, marker)
        })
    }

    /// `max_hold` is counted from `since`.
    fn grant(
        &mut self,
        since: Instant,
        deadline: Instant,
        tenure: Option<Box<Tenure>>,
        how: GrantedBy,
    ) -> Grant {
        let late = self
            .pending_outcome
            .take()
            .map(|late| (late, self.request.clone()));
        Grant {
            id: self.request.claim.owner.request,
            deadline,
            ends: timing::hold_ends(since, self.options),
            pending_outcomes: late.into_iter().collect(),
            tenure,
            how,
        }
    }

    fn make_hold(
        &mut self,
        part: Part,
        now: Instant,
        grant: Grant,
        renew_at: Option<Instant>,
    ) -> Arc<Hold> {
        let parts = OneOrMore::One(part);
        let hold = self
            .engine
            .start_hold(parts, now, self.options, grant, renew_at);
        self.may_be_stored = false;
        hold
    }
}

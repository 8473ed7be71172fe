//! What a request goes on with: a hold that the store granted or handed over, or one that another task passed on.

use std::sync::Arc;
use std::time::Instant;

use lock_store::Queue;

use super::Attempt;
use crate::engine::hold::{Grant, Hold, Part, Parts};
use crate::engine::line::{Granted, Place};
use crate::engine::time;
use crate::engine::turn::{Baton, Turn};

impl Attempt<'_> {
    /// Goes on with the hold of another task, if the store need not be asked.
    pub(super) fn take_over(&mut self, baton: Baton) -> Result<Arc<Hold>, Baton> {
        let engine = self.engine;
        let now = engine.clock.now();
        let taken = baton.take_over(now, self.options, &engine.defaults)?;
        let claim = &self.request.claim;
        let part = Part::new(claim.key.clone(), taken.owner, taken.token);
        Ok(self.held(
            part,
            now,
            now,
            taken.deadline,
            taken.renew_at,
            Some(taken.turn),
        ))
    }

    /// The next command ends the hold that was passed on, so that others have their turn first. It may be sent at once:
    /// this is the time.
    pub(super) fn goes_on_from(&mut self, baton: Baton) -> Instant {
        self.request.instead_of = Some(baton.owner());
        // The plain command knows nothing of the hold that ends with it.
        if self.request.queue == Queue::Barge {
            self.request.queue = Queue::Respect;
        }
        self.previous = Some(baton);
        self.engine.clock.now()
    }

    /// Ends what was passed on, whatever becomes of this request: others wait for it.
    pub(super) fn give_up_previous(&mut self) {
        self.request.instead_of = None;
        if let Some(baton) = self.previous.take() {
            self.engine.end_turn(&baton);
        }
    }

    /// A hold that was handed over, if it can be trusted without asking.
    pub(super) fn handed_over(&mut self, place: &Place, granted: Granted) -> Option<Arc<Hold>> {
        let Granted { link, token, after } = granted;
        let now = self.engine.clock.now();
        let (confirmed, _) = self.confirmed.filter(|(_, over)| *over == link)?;
        let confirmed = after.map_or(confirmed, |after| after.max(confirmed));
        let deadline = time::handed_over_deadline(now, confirmed, self.request.lease)?;
        if (self.options.fenced && token.is_none()) || self.engine.store.only_hints() {
            return None;
        }
        // Its first lease is short: the watchdog asks for the whole one soon.
        let (part, turn) = (
            self.part(token),
            self.turn(Some(place), now, token, Some(deadline)),
        );
        let renew_at = time::handed_over_renewal(now, deadline);
        Some(self.held(part, now, now, deadline, Some(renew_at), turn))
    }

    pub(super) fn part(&self, token: Option<u64>) -> Part {
        Part::new(
            self.request.claim.key.clone(),
            self.request.claim.owner,
            token,
        )
    }

    /// What may be passed on of a hold that the store has just granted.
    pub(super) fn turn(
        &self,
        place: Option<&Place>,
        now: Instant,
        token: Option<u64>,
        handed_until: Option<Instant>,
    ) -> Option<Box<Turn>> {
        let (engine, claim) = (self.engine, &self.request.claim);
        let passes = claim.share.is_none() && engine.defaults.local_handoffs > 0;
        passes.then(|| {
            let mark = place.map_or_else(|| engine.lines.mark(&claim.key), Place::mark);
            let tokens = self.request.tokens;
            Turn::new(claim.owner, now, handed_until, token, tokens, mark)
        })
    }

    /// `since` is what `max_hold` is counted from.
    pub(super) fn held(
        &mut self,
        part: Part,
        now: Instant,
        since: Instant,
        deadline: Instant,
        renew_at: Option<Instant>,
        turn: Option<Box<Turn>>,
    ) -> Arc<Hold> {
        let engine = self.engine;
        let grant = Grant {
            id: self.request.claim.owner.request,
            deadline,
            ends: time::hold_ends(since, self.options),
            late: self
                .late
                .take()
                .map(|late| (late, self.request.clone()))
                .into_iter()
                .collect(),
            turn,
        };
        let hold = engine.begin(Parts::One(part), now, self.options, grant, renew_at);
        self.present = false;
        hold
    }
}

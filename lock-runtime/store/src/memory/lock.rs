//! One key, and how the operations that grant and end holds change it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::connected::Connected;
use super::holders::Holders;
use super::latch::Latches;
use super::queue::{First, Place, Places};
use crate::instant::Instant;
use crate::{
    Acquire, Acquired, Busy, Claim, ClientId, Granted, HandedOver, Link, Listener, Queue, Release,
    Released, Trust, WakeUp,
};

/// There is only one connection to the server.
pub(super) const LINK: Link = Link(0);

/// The holders of one key, its waiters, and the last fencing token.
#[derive(Debug, Default)]
pub(super) struct Lock {
    pub(super) holders: Holders,
    pub(super) queue: Places,
    pub(super) last_token: u64,
}

/// What happens to the first place.
enum Turn {
    Served,
    /// The places behind it wait until enough is free for it.
    Blocks,
    /// It is passed over until its client is heard.
    PassedOver,
    Ended,
}

/// What one operation sees of the server besides its lock.
pub(super) struct Step<'s> {
    pub(super) now: Instant,
    pub(super) micros: u64,
    pub(super) latches: &'s Latches,
    pub(super) listeners: &'s BTreeMap<ClientId, Connected>,
    pub(super) wake_ups: Vec<WakeUp>,
    pub(super) passes_over: bool,
}

impl Step<'_> {
    fn listener(&self, place: &Place) -> Option<Arc<dyn Listener>> {
        self.listeners
            .get(&place.owner.client)
            .and_then(Connected::listener)
    }
}

impl Lock {
    /// True if forgetting the lock changes nothing. A token below the server's time need not be
    /// remembered.
    pub(super) fn is_idle(&self, now: Instant, micros: u64) -> bool {
        self.holders.live(now) == 0 && self.queue.len() == 0 && self.last_token < micros
    }

    /// The first of this many new tokens.
    pub(super) fn mint(&mut self, step: &Step<'_>, tokens: u32) -> u64 {
        let first = (self.last_token + 1).max(step.micros);
        self.last_token = first + u64::from(tokens) - 1;
        first
    }

    pub(super) fn grant(&mut self, step: &Step<'_>, place: &Place, lease: Duration) -> Option<u64> {
        self.holders
            .enter(place.owner, place.permits, step.now + lease);
        (place.tokens > 0).then(|| self.mint(step, place.tokens))
    }

    /// Decides what happens to the first place.
    fn turn_of(&mut self, step: &Step<'_>, first: &First) -> Turn {
        let listens = step.listener(&first.place).is_some();
        if step.passes_over && first.has_ended(step.now) {
            return Turn::Ended;
        }
        if step.passes_over && self.queue.first_stands_still(step.now) {
            return if listens {
                Turn::PassedOver
            } else {
                Turn::Ended
            };
        }
        let permits = first.place.permits;
        if self.holders.fits(permits) {
            return Turn::Served;
        }
        // A request for another kind of lock learns of it when it asks again. If the client no
        // longer listens, its place must not keep a share free.
        if self.holders.is_other_kind(permits) || !listens {
            return Turn::Ended;
        }
        Turn::Blocks
    }

    /// Gives what is free to the first places in the queue, as long as it is enough for the next
    /// one. Stops at `me`, if given. Returns true there and at the end of the queue.
    pub(super) fn hand_over(&mut self, step: &mut Step<'_>, me: Option<&Place>) -> bool {
        while !self.holders.is_exclusive() {
            let Some(first) = self.queue.first() else {
                self.queue.forget_one(step.now);
                return true;
            };
            let place = first.place;
            if me == Some(&place) {
                return true;
            }
            match self.turn_of(step, &first) {
                Turn::Blocks => return false,
                Turn::PassedOver => self.queue.pass_over_first(step.now),
                Turn::Ended => {
                    self.queue.remove(&place);
                }
                Turn::Served => {
                    self.queue.remove(&place);
                    if let Some(listener) = step.listener(&place) {
                        let token = self.grant(step, &place, place.first_lease);
                        let granted = HandedOver::new(place.owner, token, Trust::Order(LINK));
                        step.wake_ups.push(listener.granted(granted));
                    }
                }
            }
        }
        false
    }

    pub(super) fn acquire(&mut self, step: &mut Step<'_>, request: &Acquire) -> Acquired {
        let claim = &request.claim;
        if let Some(owner) = request.instead_of {
            let before = Claim {
                owner,
                permits: None,
                ..claim.clone()
            };
            if self.holders.held(&before).is_some() {
                self.holders.leave(&before, step.now, Duration::ZERO);
            }
        }
        let place = Place::of(request);
        if request.queue == Queue::Join {
            self.queue.look_again(&place, step.now);
        }
        let limit = self.holders.other_limit(claim.permits);
        let mut mine = self.holders.held(claim).is_some();
        if !mine {
            if self.holders.is_other_kind(claim.permits) {
                return Acquired::Conflict;
            }
            if !self.holders.is_exclusive() {
                let next = request.queue == Queue::Barge || self.hand_over(step, Some(&place));
                // The holders may have changed.
                if self.holders.is_other_kind(claim.permits) {
                    return Acquired::Conflict;
                }
                mine = next && self.holders.fits(claim.permits);
            }
        }
        if mine {
            let token = self.grant(step, &place, request.lease);
            // A hand-over stopped here: those behind may have their turn too.
            if self.queue.remove(&place) {
                self.hand_over(step, None);
            }
            return Acquired::Granted(Granted {
                token,
                reserved: request.tokens,
                limit,
                until: None,
            });
        }
        if request.queue == Queue::Join {
            self.queue.join(place, step.now);
        }
        let first = self.holders.first();
        Acquired::Busy(Busy {
            remaining: first.map(|(_, ends)| ends - step.now),
            queued: self.queue.contains(&place),
            holder: first.map(|(holder, _)| holder),
            limit,
            look_in: None,
        })
    }

    pub(super) fn release(&mut self, step: &mut Step<'_>, request: &Release) -> Released {
        let held = self.holders.held(&request.claim).is_some();
        if held {
            self.holders.leave(&request.claim, step.now, request.keep);
        }
        if !self.holders.is_exclusive() {
            self.hand_over(step, None);
        }
        released(held)
    }
}

pub(super) fn released(held: bool) -> Released {
    if held {
        Released::Released
    } else {
        Released::NotHeld
    }
}

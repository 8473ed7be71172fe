//! One key: what the verbs that grant and end holds do to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::holders::Holders;
use super::latch::Latches;
use super::queue::{Place, Places};
use crate::instant::Instant;
use crate::{Acquire, Acquired, Claim, ClientId, Link, Listener, Queue, Release, Released, WakeUp};

/// There is only one way to it.
pub(super) const LINK: Link = Link(0);

/// Who holds one key, who waits for it, and the last fencing token.
#[derive(Debug, Default)]
pub(super) struct Lock {
    pub(super) holders: Holders,
    pub(super) queue: Places,
    pub(super) last_token: u64,
}

/// What one verb sees of the server besides its lock.
pub(super) struct Step<'s> {
    pub(super) now: Instant,
    pub(super) micros: u64,
    pub(super) latches: &'s Latches,
    pub(super) listeners: &'s BTreeMap<ClientId, Weak<dyn Listener>>,
    pub(super) wake_ups: Vec<WakeUp>,
}

impl Step<'_> {
    fn listener(&self, place: &Place) -> Option<Arc<dyn Listener>> {
        self.listeners
            .get(&place.owner.client)
            .and_then(Weak::upgrade)
    }
}

impl Lock {
    /// Whether nothing would change if it were forgotten. A token below the server's time needs no memory.
    pub(super) fn is_idle(&self, now: Instant, micros: u64) -> bool {
        self.holders.live(now) == 0 && self.queue.len() == 0 && self.last_token < micros
    }

    /// The first of so many new tokens.
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

    /// Gives what is free to those who are first in the queue, as long as it is enough for the next.
    /// Stops in front of `me`, if given, and is true then, or at the end of the queue.
    pub(super) fn hand_over(&mut self, step: &mut Step<'_>, me: Option<&Claim>) -> bool {
        while let Some(place) = self.queue.first() {
            if me.is_some_and(|me| me.owner == place.owner) {
                return true;
            }
            let listener = step.listener(&place);
            if !self.holders.fits(place.permits) {
                // Who waits for another kind of lock, or for more than there is, learns of it at its next recheck; and a
                // free share in front of which nobody waits any more must not stay free.
                let waits = listener.is_some() && self.holders.could_fit(place.permits);
                if waits || self.holders.is_exclusive() {
                    return false;
                }
                self.queue.remove(place.owner);
                continue;
            }
            self.queue.remove(place.owner);
            if let Some(listener) = listener {
                let token = self.grant(step, &place, place.first_lease);
                step.wake_ups
                    .push(listener.granted(LINK, place.owner, token));
            }
        }
        true
    }

    /// Whether it is held as something else than what the request is for. A semaphore that was resized still serves those
    /// who stood in its queue before.
    fn refuses(&self, claim: &Claim) -> bool {
        let queued = self.queue.contains(claim.owner) && self.holders.could_fit(claim.permits);
        self.holders.is_other_kind(claim.permits)
            || self.holders.has_other_count(claim.permits) && !queued
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
        let mut mine = self.holders.held(claim).is_some();
        if !mine {
            if self.refuses(claim) {
                return Acquired::Conflict;
            }
            if !self.holders.is_exclusive() {
                let next = request.queue == Queue::Barge || self.hand_over(step, Some(claim));
                // By whom it is held now may have changed.
                if self.refuses(claim) {
                    return Acquired::Conflict;
                }
                mine = next && self.holders.fits(claim.permits);
            }
        }
        let place = Place {
            owner: claim.owner,
            permits: claim.permits,
            first_lease: request.first_lease,
            tokens: request.tokens,
        };
        if mine {
            self.queue.remove(claim.owner);
            return Acquired::Granted {
                token: self.grant(step, &place, request.lease),
            };
        }
        if request.queue == Queue::Join {
            self.queue.join(place);
        }
        Acquired::Busy {
            remaining: self.holders.first_end().map(|ends| ends - step.now),
            queued: self.queue.contains(claim.owner),
        }
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

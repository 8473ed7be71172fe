//! The wait queue: first come, first served. The places of a client that stands still are suspended
//! until the client is heard.

use std::time::Duration;

use super::holders::Holders;
use crate::instant::Instant;
use crate::timing::{QUEUE_TTL, UNHEARD};
use crate::{Acquire, Owner, Permits};

/// The first place that is not suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Who waits.
    pub owner: Owner,
    /// For which part of the key.
    pub permits: Option<Permits>,
    /// The length of the hold that is handed over.
    pub first_lease: Duration,
    /// The number of fencing tokens to reserve with it.
    pub tokens: u32,
    /// When its wait ends.
    pub ends: Option<Instant>,
    /// When it was taken, or a request of its client with a place in this queue asked again.
    pub heard: Instant,
}

/// What happens to the first place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It gets what it asks for.
    Served,
    /// The places behind it wait until enough is free for it.
    Blocks,
    /// It is suspended until its client is heard.
    Suspended,
    /// It is removed.
    Ended,
}

impl Waiting {
    /// The place that this request takes now.
    #[must_use]
    pub fn of(request: &Acquire, now: Instant) -> Self {
        Self {
            owner: request.claim.owner,
            permits: request.claim.permits,
            first_lease: request.first_lease,
            tokens: request.tokens,
            ends: request.wait.map(|wait| now + wait),
            heard: now,
        }
    }

    /// True if its request has given up, or would have if it ran.
    #[must_use]
    pub fn has_ended(&self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| now > ends)
    }

    /// Decides what happens to it, if its wait goes on and its client can be told.
    #[must_use]
    pub fn turn(&self, holders: &Holders, now: Instant) -> Turn {
        if now - self.heard > UNHEARD {
            Turn::Suspended
        } else if holders.fits(self.permits) {
            Turn::Served
        } else if holders.is_other_kind(self.permits) {
            // Its request learns of it when it asks again.
            Turn::Ended
        } else {
            Turn::Blocks
        }
    }
}

/// True if a place that was suspended then is over: its client was not heard for long.
#[must_use]
pub fn is_forgotten(suspended: Instant, now: Instant) -> bool {
    now > suspended + QUEUE_TTL
}

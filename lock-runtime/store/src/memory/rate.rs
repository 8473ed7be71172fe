//! Token buckets of rate limiters: what `rate.lua` does, in Rust.
//!
//! The algorithm is the *generic cell rate algorithm* in its virtual scheduling form (ATM Forum,
//! *Traffic Management Specification 4.0*, af-tm-0056.000; increment T = interval, tolerance τ =
//! (burst − 1)·T). The projects throttled and redis-cell made it known for web services. It needs
//! no tick: a bucket is one instant, the *theoretical arrival time*, at which it is full again.

use std::time::Duration;

use super::name::Name;
use crate::instant::Instant;
use crate::{RateRequest, Rated, SweepingMap};

/// All buckets that are not full.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    buckets: SweepingMap<Name, Bucket>,
}

/// A bucket as it was when tokens were last taken.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    at: Instant,
    /// How long after `at` the last request that took tokens passes. Above zero if that request
    /// waits.
    turn: Duration,
    /// How long after `at` the bucket is full.
    debt: Duration,
}

impl Buckets {
    pub(super) fn clear(&mut self) {
        self.buckets.clear();
    }

    /// The number of buckets that are not full.
    pub(super) fn count(&self, now: Instant) -> usize {
        let open = self.buckets.values().filter(|bucket| !bucket.is_full(now));
        open.count()
    }

    pub(super) fn take(&mut self, name: Name, now: Instant, request: &RateRequest) -> Rated {
        let known = self.buckets.get(&name);
        let (rated, changed) = decide(known, now, request);
        if let Some(bucket) = changed {
            self.buckets.sweep(|bucket| !bucket.is_full(now));
            self.buckets.insert(name, bucket);
        }
        rated
    }
}

impl Bucket {
    fn is_full(&self, now: Instant) -> bool {
        self.debt <= now.saturating_duration_since(self.at)
    }
}

/// The reply, and the new state of the bucket if it changes.
fn decide(known: Option<&Bucket>, now: Instant, request: &RateRequest) -> (Rated, Option<Bucket>) {
    let window = request.interval * request.burst;
    let (turn, debt) = known.map_or_else(Default::default, |bucket| {
        let elapsed = now.saturating_duration_since(bucket.at);
        // Another rate may have been in force. At worst, the bucket was empty when the last taker
        // passed.
        let debt = bucket.debt.min(bucket.turn + window);
        (
            bucket.turn.saturating_sub(elapsed),
            debt.saturating_sub(elapsed),
        )
    });
    let debt = debt + request.interval * request.tokens;
    let delay = debt.saturating_sub(window);
    if delay > request.wait {
        return (Rated::Limited { retry_after: delay }, None);
    }
    let free = window.saturating_sub(debt).as_nanos();
    let left = free.checked_div(request.interval.as_nanos()).unwrap_or(0);
    let passed = Rated::Passed {
        delay,
        left: u32::try_from(left).unwrap_or(u32::MAX),
    };
    let bucket = Bucket {
        at: now,
        turn: turn.max(delay),
        debt,
    };
    (passed, (request.tokens > 0).then_some(bucket))
}

//! Token buckets of rate limiters.

use std::time::Duration;

use crate::{RateRequest, Rated};

/// A bucket of tokens, as it was when some were last taken. A full one is the default.
///
/// The algorithm is the *generic cell rate algorithm* in its virtual scheduling form (ATM Forum,
/// *Traffic Management Specification 4.0*, af-tm-0056.000; increment T = interval, tolerance τ =
/// (burst − 1)·T). The projects throttled and redis-cell made it known for web services. It needs
/// no tick: a bucket is one instant, the *theoretical arrival time*, at which it is full again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// How long after that the last request that took tokens passes. Above zero if that request
    /// waits.
    pub turn: Duration,
    /// How long after that the bucket is full.
    pub debt: Duration,
}

impl TokenBucket {
    /// The reply to a request that comes `elapsed` after the last change, and the new state, if it
    /// changes.
    ///
    /// `None` means that the clock was set back, behind that time. The bucket counts from now on
    /// instead, whether or not tokens are taken: nobody is refused for longer than the bucket takes
    /// to be full.
    #[must_use]
    pub fn take(self, elapsed: Option<Duration>, request: &RateRequest) -> (Rated, Option<Self>) {
        let set_back = elapsed.is_none();
        let elapsed = elapsed.unwrap_or_default();
        let window = request.interval * request.burst;
        let turn = self.turn.saturating_sub(elapsed);
        // Another rate may have been in force. At worst, the bucket was empty when the last taker
        // passed.
        let owed = self.debt.min(self.turn + window).saturating_sub(elapsed);
        let debt = owed + request.interval * request.tokens;
        let delay = debt.saturating_sub(window);
        if delay > request.wait {
            let from_now = set_back.then_some(Self { turn, debt: owed });
            return (Rated::Limited { retry_after: delay }, from_now);
        }
        let free = window.saturating_sub(debt).as_nanos();
        let left = free.checked_div(request.interval.as_nanos()).unwrap_or(0);
        let passed = Rated::Passed {
            delay,
            left: u32::try_from(left).unwrap_or(u32::MAX),
        };
        let turn = turn.max(delay);
        (passed, (request.tokens > 0).then_some(Self { turn, debt }))
    }
}

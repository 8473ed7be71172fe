//! The contract of rate limiters: one operation, which decides and takes in one step.

use std::time::Duration;

use crate::key::LockKey;

/// A request for tokens of a bucket.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RateRequest {
    /// The bucket's key, without namespace.
    pub key: LockKey,
    /// How long the bucket takes to get one token back; at least a microsecond.
    pub interval: Duration,
    /// The number of tokens in a full bucket. `burst * interval` is at most 30 days.
    pub burst: u32,
    /// The number of tokens wanted, at most `burst`. Zero takes nothing and only looks.
    pub tokens: u32,
    /// The longest delay that the request accepts, at most 30 days.
    pub wait: Duration,
}

impl RateRequest {
    /// A look at a bucket that gets a token back in each `interval` and is full with `burst`.
    #[must_use]
    pub fn new(key: LockKey, interval: Duration, burst: u32) -> Self {
        Self {
            key,
            interval,
            burst,
            tokens: 0,
            wait: Duration::ZERO,
        }
    }
}

/// The reply to [`Store::rate`](crate::Store::rate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rated {
    /// The tokens are taken. The request passes after this delay, which is within its wait.
    Passed {
        /// Zero means now.
        delay: Duration,
        /// The tokens left in the bucket.
        left: u32,
    },
    /// Nothing was taken.
    Limited {
        /// When the same request would pass without a wait, if no other takes tokens meanwhile.
        retry_after: Duration,
    },
    /// The key holds something else.
    Conflict,
}

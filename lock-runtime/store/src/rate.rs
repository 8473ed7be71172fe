//! The contract of rate limiters: one verb, which decides and takes in one step.

use std::time::Duration;

use crate::key::LockKey;

/// A request for tokens of a bucket.
#[derive(Clone, Debug)]
pub struct RateRequest {
    /// Which bucket, without namespace.
    pub key: LockKey,
    /// How long the bucket takes to get one token back; at least a microsecond.
    pub interval: Duration,
    /// How many tokens the full bucket holds. `burst * interval` is at most 30 days.
    pub burst: u32,
    /// How many are wanted, at most `burst`. Zero takes nothing: it looks.
    pub tokens: u32,
    /// How long the requester would sleep for them, at most 30 days.
    pub wait: Duration,
}

/// The reply to [`Store::rate`](crate::Store::rate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rated {
    /// The tokens are taken, and the requester passes after this delay, which is within its wait.
    Passed {
        /// Zero: now.
        delay: Duration,
        /// Tokens that are in the bucket still.
        left: u32,
    },
    /// Nothing was taken.
    Limited {
        /// When the same request would pass without any wait, if nobody else takes tokens
        /// meanwhile.
        retry_after: Duration,
    },
    /// The key holds something else.
    Conflict,
}

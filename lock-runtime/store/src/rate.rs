//! The contract of rate limiters: one operation, which decides and takes in one step.

use std::time::Duration;

use crate::key::LockKey;

/// The most that an exact limit lets through in its window.
pub const MAX_EXACT: u32 = 10_000;

/// A request for tokens of a bucket, or under an exact limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RateRequest {
    /// The bucket's key, without namespace.
    pub key: LockKey,
    /// How long the bucket takes to get one token back; at least a microsecond. Not used with a
    /// `window`.
    pub interval: Duration,
    /// The number of tokens in a full bucket. `burst * interval` is at most 30 days.
    pub burst: u32,
    /// If given, this is an exact limit, not a bucket: in no time of this length more than `burst`
    /// tokens pass. A whole number of microseconds, at most 30 days, with a `burst` of at most
    /// [`MAX_EXACT`]. Only stores with [`Capabilities::exact_rate`](crate::Capabilities) are asked.
    pub window: Option<Duration>,
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
            window: None,
            tokens: 0,
            wait: Duration::ZERO,
        }
    }

    /// A look at an exact limit.
    #[must_use]
    pub fn at_most(key: LockKey, limit: u32, window: Duration) -> Self {
        let window = Some(window);
        Self {
            window,
            ..Self::new(key, Duration::ZERO, limit)
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

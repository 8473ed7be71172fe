//! Count-down latches: the requests to a store, and its replies.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::key::LockKey;
use crate::owner::Owner;
use crate::timing::{CALL_AHEAD, CALL_VALID};

/// One call on a latch, or one place among its waiters. Safe to repeat: for a while, a store
/// remembers what it did for an owner token.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LatchCall {
    /// The latch's key, without namespace.
    pub key: LockKey,
    /// The owner token of the call or the place.
    pub owner: Owner,
    /// When this attempt was sent, in microseconds since 1970 on the store's clock, as far as the
    /// client knows it. A place needs none.
    pub made: Option<u64>,
}

impl LatchCall {
    /// A call that was made then, or a place among the waiters.
    #[must_use]
    pub fn new(key: LockKey, owner: Owner, made: Option<u64>) -> Self {
        Self { key, owner, made }
    }

    /// The period in which a store may carry out this attempt, in microseconds since 1970 on its
    /// clock. Empty if the time of sending is unknown.
    #[must_use]
    pub fn valid(&self) -> RangeInclusive<u64> {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.made.map_or(RangeInclusive::new(1, 0), |made| {
            let from = made.saturating_sub(micros(CALL_AHEAD));
            from..=made.saturating_add(micros(CALL_VALID))
        })
    }
}

/// The reply to [`Store::latch_set`](crate::Store::latch_set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchSet {
    /// This call set the latch.
    Set,
    /// The latch is set already, and has not opened.
    SetBefore,
    /// This attempt is not [valid](LatchCall::valid), and changed nothing.
    Untimely {
        /// The store's time, in microseconds since 1970.
        now: u64,
    },
    /// The key, or a helper key, is something else.
    Conflict,
}

/// The reply to [`Store::latch_count_down`](crate::Store::latch_count_down).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchCounted {
    /// The number of counts left; zero means open.
    Left(u32),
    /// The latch was never set, or no longer exists.
    NotSet,
    /// This attempt is not [valid](LatchCall::valid), and changed nothing.
    Untimely {
        /// The store's time, in microseconds since 1970.
        now: u64,
    },
    /// The key, or a helper key, is something else.
    Conflict,
}

/// The reply to [`Store::latch_look`](crate::Store::latch_look) and
/// [`Store::latch_wait`](crate::Store::latch_wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchFound {
    /// The latch's state.
    Is(LatchState),
    /// The latch was never set, or no longer exists.
    NotSet,
    /// The key, or a helper key, is something else.
    Conflict,
}

/// A latch that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatchState {
    /// The number of counts left; zero means open.
    pub count: u32,
    /// Rises each time the latch is set.
    pub generation: u64,
    /// The last generation before this one, if it opened and was set again without a gap; otherwise
    /// zero.
    pub opened: u64,
    /// How much longer it exists; `None` means for ever.
    pub remaining: Option<Duration>,
}

impl LatchState {
    /// A latch that was set in this generation, with this many counts left.
    #[must_use]
    pub fn new(count: u32, generation: u64) -> Self {
        Self {
            count,
            generation,
            opened: 0,
            remaining: None,
        }
    }
}

//! Count-down latches: what is asked of a store, and what it answers.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::key::LockKey;
use crate::owner::Owner;
use crate::timing::{CALL_AHEAD, CALL_VALID};

/// One call on a latch, or one place among its waiters. Safe to repeat: a store remembers for a
/// while what it did for an owner token.
#[derive(Clone, Debug)]
pub struct LatchCall {
    /// The latch, without namespace.
    pub key: LockKey,
    /// The call, or the place.
    pub owner: Owner,
    /// When this attempt was sent, in microseconds since 1970 by the store's clock, as far as its
    /// client knows that. A place needs none.
    pub made: Option<u64>,
}

impl LatchCall {
    /// When this attempt may be carried out, in microseconds since 1970 by the store's clock.
    /// Never, if it does not say when it was sent.
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
    /// This call set it.
    Set,
    /// It is set already, and has not opened.
    SetBefore,
    /// This attempt is not [valid](LatchCall::valid), and nothing was done.
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
    /// How many are left to count; zero is open.
    Left(u32),
    /// It was never set, or no longer exists.
    NotSet,
    /// This attempt is not [valid](LatchCall::valid), and nothing was done.
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
    /// What it is.
    Is(LatchState),
    /// It was never set, or no longer exists.
    NotSet,
    /// The key, or a helper key, is something else.
    Conflict,
}

/// A latch that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatchState {
    /// How many are left to count; zero is open.
    pub count: u32,
    /// Higher with each time it is set.
    pub generation: u64,
    /// The last generation before this one that opened, and was set again without a gap; zero if
    /// none.
    pub opened: u64,
    /// How long it still exists; `None` for ever.
    pub remaining: Option<Duration>,
}

//! Count-down latches: what is asked of a store, and what it answers.

use std::time::Duration;

use crate::key::LockKey;
use crate::owner::Owner;

/// Something to do with a latch. Safe to repeat: a store knows for a while what it did under an owner token.
#[derive(Clone, Debug)]
pub struct LatchRequest {
    /// The latch, without namespace.
    pub key: LockKey,
    /// One call, or one place among those who wait.
    pub owner: Owner,
    /// What to do.
    pub verb: LatchVerb,
}

/// What to do with a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatchVerb {
    /// Sets it, unless it is set and has not opened yet.
    Set {
        /// How often it must be counted down; not zero.
        count: u32,
        /// How long it exists, open or not.
        ttl: Duration,
    },
    /// Counts it down by one. The last one tells everyone who waits: [`Listener::granted`](crate::Listener::granted)
    /// with the generation that opened.
    CountDown,
    /// What it is.
    Look,
    /// The same, and unless it is open the owner has a place among those who are told when it opens. A place is
    /// forgotten after a minute; a repeat keeps it.
    Wait,
    /// Gives the place up.
    Leave,
}

/// The reply to [`Store::latch`](crate::Store::latch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latched {
    /// To `Set`: whether this owner did.
    Set(bool),
    /// To `CountDown`: how many are left to count.
    Counted(u32),
    /// To `Look` and `Wait`.
    Is(LatchState),
    /// To `CountDown`, `Look` and `Wait`: it was never set, or no longer exists.
    NotSet,
    /// To `Leave`.
    Left,
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
    /// The last generation before this one that opened, and was set again without a gap; zero if none.
    pub opened: u64,
    /// How long it still exists; `None` for ever.
    pub remaining: Option<Duration>,
}

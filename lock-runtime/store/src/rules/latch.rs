//! Count-down latches: what a call does, once however often it arrives.

use crate::instant::Instant;
use crate::{LatchCall, LatchCounted, LatchFound, LatchSet, LatchState};

/// A latch that is set, open or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredLatch {
    /// The number of counts left; zero means open.
    pub count: u32,
    /// Rises each time the latch is set.
    pub generation: u64,
    /// See [`LatchState::opened`].
    pub opened: u64,
    /// When it is forgotten.
    pub expires: Instant,
}

/// One latch during one call, as an engine keeps it.
///
/// A call returns its reply, and the latch if it has changed. Then the engine writes the latch, and
/// remembers its count as the one that this call has left.
#[derive(Clone, Copy, Debug)]
pub struct LatchRecord {
    /// The latch, if it is set.
    pub latch: Option<StoredLatch>,
    /// The count that this call has left, if it is remembered.
    pub left: Option<u32>,
    /// The store's time, in microseconds since 1970.
    pub micros: u64,
}

impl LatchRecord {
    /// See [`Store::latch_set`](crate::Store::latch_set).
    #[must_use]
    pub fn set(
        self,
        call: &LatchCall,
        count: u32,
        expires: Instant,
    ) -> (LatchSet, Option<StoredLatch>) {
        if self.left.is_some() {
            return (LatchSet::Set, None);
        }
        if !call.valid().contains(&self.micros) {
            return (LatchSet::Untimely { now: self.micros }, None);
        }
        let opened = match self.latch {
            Some(latch) if latch.count > 0 => return (LatchSet::SetBefore, None),
            before => before.map_or(0, |latch| latch.generation),
        };
        let latch = StoredLatch {
            count,
            generation: (opened + 1).max(self.micros),
            opened,
            expires,
        };
        (LatchSet::Set, Some(latch))
    }

    /// See [`Store::latch_count_down`](crate::Store::latch_count_down). If no count is left, the
    /// waiters are told, and their places are over.
    #[must_use]
    pub fn count_down(self, call: &LatchCall) -> (LatchCounted, Option<StoredLatch>) {
        if let Some(left) = self.left {
            return (LatchCounted::Left(left), None);
        }
        if !call.valid().contains(&self.micros) {
            return (LatchCounted::Untimely { now: self.micros }, None);
        }
        let Some(mut latch) = self.latch else {
            return (LatchCounted::NotSet, None);
        };
        if latch.count == 0 {
            return (LatchCounted::Left(0), None);
        }
        latch.count -= 1;
        (LatchCounted::Left(latch.count), Some(latch))
    }
}

impl StoredLatch {
    /// True if whoever waits for it gets a place.
    #[must_use]
    pub fn takes_waiters(latch: Option<Self>) -> bool {
        latch.is_none_or(|latch| latch.count > 0)
    }

    /// See [`Store::latch_look`](crate::Store::latch_look).
    #[must_use]
    pub fn look(latch: Option<Self>, now: Instant) -> LatchFound {
        latch.map_or(LatchFound::NotSet, |latch| {
            LatchFound::Is(LatchState {
                count: latch.count,
                generation: latch.generation,
                opened: latch.opened,
                remaining: Some(latch.expires - now),
            })
        })
    }
}

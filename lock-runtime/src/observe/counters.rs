//! [`Counters`]: what a client has done since it was made.

use std::sync::atomic::{AtomicU64, Ordering};

use super::event::GrantedBy;
use super::stats::Stats;
use crate::error::LockError;

/// Counts, whether anybody observes or not.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    by_store: AtomicU64,
    handed_over: AtomicU64,
    handed_off: AtomicU64,
    nested: AtomicU64,
    busy: AtomicU64,
    unavailable: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
    lost: AtomicU64,
    released: AtomicU64,
}

impl Counters {
    pub(crate) fn record_granted(&self, how: GrantedBy) {
        let counter = match how {
            GrantedBy::Store => &self.by_store,
            GrantedBy::HandedOver => &self.handed_over,
            GrantedBy::HandedOff => &self.handed_off,
            GrantedBy::Nested => &self.nested,
        };
        count(counter);
    }

    pub(crate) fn record_failed(&self, error: &LockError) {
        count(match error {
            LockError::Busy { .. } => &self.busy,
            LockError::Unavailable { .. } => &self.unavailable,
            _ => &self.refused,
        });
    }

    pub(crate) fn record_cancelled(&self) {
        count(&self.cancelled);
    }

    pub(crate) fn record_lost(&self) {
        count(&self.lost);
    }

    pub(crate) fn record_released(&self) {
        count(&self.released);
    }

    /// The counters, with the states left at zero.
    pub(crate) fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            granted_by_store: read(&self.by_store),
            handed_over: read(&self.handed_over),
            handed_off: read(&self.handed_off),
            nested: read(&self.nested),
            busy: read(&self.busy),
            unavailable: read(&self.unavailable),
            refused: read(&self.refused),
            cancelled: read(&self.cancelled),
            lost: read(&self.lost),
            released: read(&self.released),
            ..Stats::default()
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

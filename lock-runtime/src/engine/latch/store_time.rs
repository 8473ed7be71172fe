//! What time it is at the store, as far as the client knows.

use lock_store::{Instant, Mutex};

/// What the store last said its time was.
#[derive(Debug, Default)]
pub(crate) struct StoreTime {
    told: Mutex<Option<ToldTime>>,
}

#[derive(Clone, Copy, Debug)]
struct ToldTime {
    /// Microseconds since 1970.
    micros: u64,
    heard: Instant,
}

impl StoreTime {
    pub(super) fn note(&self, micros: u64, heard: Instant) {
        *self.told.lock() = Some(ToldTime { micros, heard });
    }

    /// The store's time in microseconds since 1970, if it has ever said it. It is counted from when
    /// it was heard, not from when it was asked for: unless a clock is set or goes wrong, the
    /// store's is not behind this.
    pub(super) fn at(&self, now: Instant) -> Option<u64> {
        let told = (*self.told.lock())?;
        let since = now.saturating_duration_since(told.heard);
        let since = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        Some(told.micros.saturating_add(since))
    }
}

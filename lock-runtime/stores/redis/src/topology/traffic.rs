//! [`Traffic`]: what goes over a connection, as far as it tells a slow server from a dead one.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts over the whole life of a connection.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    writes: AtomicU64,
    reads: AtomicU64,
}

/// A point in the life of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    writes: u64,
}

impl Traffic {
    /// Something was written.
    pub(crate) fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Something was read.
    pub(crate) fn read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// How often something was read so far.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The present point.
    pub(crate) fn mark(&self) -> Mark {
        let writes = self.writes.load(Ordering::Relaxed);
        Mark { writes }
    }

    /// Whether anything was written since then.
    pub(crate) fn has_written_since(&self, mark: Mark) -> bool {
        self.writes.load(Ordering::Relaxed) != mark.writes
    }
}

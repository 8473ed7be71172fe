//! [`Traffic`]: what goes over a connection. It tells a slow server from a dead one, and a crowd of
//! requests from a single one.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counts over the whole life of a connection.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    writes: AtomicU64,
    reads: AtomicU64,
    under_way: AtomicU32,
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct RequestUnderWay<'t>(&'t Traffic);

impl Drop for RequestUnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A point in the life of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    writes: u64,
}

impl Traffic {
    /// It was tried to write something.
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

    /// Counts a request.
    pub(crate) fn begin(&self) -> RequestUnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        RequestUnderWay(self)
    }

    /// Whether more than one request is under way.
    pub(crate) fn is_shared(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 1
    }

    /// The present point.
    pub(crate) fn mark(&self) -> Mark {
        let writes = self.writes.load(Ordering::Relaxed);
        Mark { writes }
    }

    /// Whether it was tried to write anything since then.
    pub(crate) fn has_written_since(&self, mark: Mark) -> bool {
        self.writes.load(Ordering::Relaxed) != mark.writes
    }
}

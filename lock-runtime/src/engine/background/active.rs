//! Counts what a shutdown waits for: requests, releases, calls on latches and their watchers.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Requests and releases that are under way.
#[derive(Debug, Default)]
pub(in crate::engine) struct Active {
    count: AtomicUsize,
    /// Whether a shutdown waits for the end of the last.
    awaited: AtomicBool,
    idle: Notify,
}

/// One of them.
#[derive(Debug)]
pub(in crate::engine) struct Entered<A: Deref<Target = Active>>(A);

impl Active {
    pub(in crate::engine) fn enter<A: Deref<Target = Self>>(active: A) -> Entered<A> {
        active.count.fetch_add(1, Ordering::SeqCst);
        Entered(active)
    }

    pub(super) async fn until_idle(&self) {
        // In one order with the count. Either the end of the last sees this, or this sees a count
        // of zero.
        self.awaited.store(true, Ordering::SeqCst);
        loop {
            let idle = self.idle.notified();
            if self.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl<A: Deref<Target = Active>> Drop for Entered<A> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.awaited.load(Ordering::SeqCst)
        {
            self.0.idle.notify_waiters();
        }
    }
}

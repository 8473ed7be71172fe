//! The end of a client: nothing new, nothing left behind.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::Engine;
use crate::config::FAR;
use crate::error::LostReason;

impl Engine {
    /// Refuses new and waiting requests, gives bodies until the timeout, ends what is held still, and waits for releases.
    pub(crate) async fn shutdown(&self, timeout: Duration) {
        self.closing.store(true, Ordering::Release);
        self.lines.wake_all();
        self.closed.notify_waiters();
        let by = self.clock.now() + timeout.min(FAR);
        let _ = self.clock.by(by, self.watchdog.until_idle()).await;
        self.lose_all();
        // A store that is gone can't be released to; leases end by themselves.
        let by = self.clock.now() + 2 * self.defaults.command_timeout;
        let quiet = async {
            // First the requests and releases under way, since each may leave the reaper something to do.
            self.active.until_idle().await;
            self.lose_all();
            self.reaper.drained().await;
        };
        let _ = self.clock.by(by, quiet).await;
        self.store.close();
    }

    /// Ends every hold, for a shutdown; those too that are on their way to a task that nobody polls.
    fn lose_all(&self) {
        for baton in self.lines.not_taken(self.clock.now()).unwrap_or_default() {
            self.pass_back(baton);
        }
        for hold in self.watchdog.holds() {
            hold.lose(LostReason::Shutdown);
            self.watchdog.forget(&hold);
            // One that was released, or became part of another hold, is no longer this function's to end.
            if !hold.ended() {
                self.send_release(&hold, false, true);
            }
        }
    }
}

/// Counts requests and releases that are under way in callers' tasks.
#[derive(Debug, Default)]
pub(super) struct Active {
    count: AtomicUsize,
    /// Whether somebody waits for the end of the last.
    awaited: AtomicBool,
    idle: Notify,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Entered<A: Deref<Target = Active>>(A);

impl Active {
    pub(super) fn enter<A: Deref<Target = Self>>(active: A) -> Entered<A> {
        active.count.fetch_add(1, Ordering::SeqCst);
        Entered(active)
    }

    async fn until_idle(&self) {
        // In one order with the count: whoever ends the last sees that it is awaited, or the count is seen to be zero.
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

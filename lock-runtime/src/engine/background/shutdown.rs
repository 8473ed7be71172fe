//! The end of a client: nothing new, nothing left behind.

use std::sync::Arc;
use std::time::Duration;

use lock_store::Instant;

use crate::config::FAR;
use crate::engine::Engine;
use crate::engine::background::cleanup::GoneHold;
use crate::engine::hold::Hold;
use crate::engine::hold::release::LaterRequests;
use crate::engine::reentrancy::call_chain;
use crate::error::LostReason;

impl Engine {
    /// After [`refuse_requests`](Self::refuse_requests): ends waiting requests, gives bodies time
    /// until the timeout, ends the holds that are left, and waits for releases. The holds around
    /// the caller itself are none of these: they go on until they are released, and then the
    /// background does the rest.
    pub(crate) async fn shutdown(self: &Arc<Self>, timeout: Duration) {
        debug_assert!(self.is_closing(), "it refuses requests before it ends");
        self.local_queues.wake_all();
        self.closed.notify_waiters();
        if self.has_no_thread() {
            return;
        }
        let own = call_chain::holds(self.id());
        let by = self.clock.now() + timeout.min(FAR);
        let _ = self.clock.by(by, self.watchdog.until_idle_but(&own)).await;
        self.lose_all_but(&own);
        let by = self.quiet_down(&own).await;
        if own.is_empty() {
            self.close(by).await;
        } else {
            let engine = Arc::clone(self);
            self.clock.spawn(async move {
                engine.watchdog.until_idle_but(&[]).await;
                let by = engine.quiet_down(&[]).await;
                engine.close(by).await;
            });
        }
    }

    /// Waits for what is under way, for a while: the instant until which a shutdown may go on.
    async fn quiet_down(&self, own: &[Arc<Hold>]) -> Instant {
        // A store that is gone hears no release. Leases end by themselves.
        let by = self.clock.now() + 2 * self.defaults.command_timeout;
        let quiet = async {
            // First the requests and releases under way: each may leave something to undo.
            self.active.until_idle().await;
            self.lose_all_but(own);
            self.cleanup.until_drained().await;
            self.store.finish(by).await;
        };
        let _ = self.clock.by(by, quiet).await;
        by
    }

    /// Closes the store, and tells the observers.
    async fn close(&self, by: Instant) {
        self.store.close();
        self.messages.disconnect_all();
        let _ = self.clock.by(by, self.observed.events.flush()).await;
    }

    /// Ends when a shutdown has begun.
    pub(crate) async fn closing(&self) {
        // Registered before the question, so that no shutdown falls between the two.
        let closed = self.closed.notified();
        if !self.is_closing() {
            closed.await;
        }
    }

    /// Ends each other hold, for a shutdown. Also a handoff on its way to a task that nobody polls.
    fn lose_all_but(&self, own: &[Arc<Hold>]) {
        for handoff in self.local_queues.take_handoffs() {
            self.hand_off_or_end(handoff);
        }
        let mut holds = self.watchdog.holds();
        holds.retain(|hold| !own.iter().any(|one| Arc::ptr_eq(one, hold)));
        for hold in holds {
            hold.lose(LostReason::Shutdown);
            self.observed.record_lost(&hold, self.clock.now());
            self.watchdog.forget(&hold);
            // A hold that was released, or became a part of another, is not ended here.
            if !hold.is_released() {
                self.send_release(&hold, LaterRequests::GoOn, GoneHold::IsExpected);
            }
        }
    }
}

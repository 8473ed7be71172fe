//! The end of a client: nothing new, nothing left behind.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::config::FAR;
use crate::engine::Engine;
use crate::error::LostReason;

impl Engine {
    /// Refuses new and waiting requests, gives bodies time until the timeout, ends the holds that
    /// are left, and waits for releases.
    pub(crate) async fn shutdown(&self, timeout: Duration) {
        self.closing.store(true, Ordering::Release);
        if self.is_forked() {
            return;
        }
        self.local_queues.wake_all();
        self.closed.notify_waiters();
        let by = self.clock.now() + timeout.min(FAR);
        let _ = self.clock.by(by, self.watchdog.until_idle()).await;
        self.lose_all();
        // A store that is gone hears no release. Leases end by themselves.
        let by = self.clock.now() + 2 * self.defaults.command_timeout;
        let quiet = async {
            // First the requests and releases under way: each may leave something to undo.
            self.active.until_idle().await;
            self.lose_all();
            self.undo.drained().await;
            self.store.finish(by).await;
        };
        let _ = self.clock.by(by, quiet).await;
        self.store.close();
        self.messages.all_disconnected();
        let by = self.clock.now() + self.defaults.command_timeout;
        let _ = self.clock.by(by, self.observed.events.told()).await;
    }

    /// Ends each hold, for a shutdown. Also a handoff on its way to a task that nobody polls.
    fn lose_all(&self) {
        for handoff in self.local_queues.take_handoffs() {
            self.pass_back(handoff);
        }
        for hold in self.watchdog.holds() {
            hold.lose(LostReason::Shutdown);
            self.observed.lost(&hold, self.clock.now());
            self.watchdog.forget(&hold);
            // A hold that was released, or became a part of another, is not ended here.
            if !hold.ended() {
                self.send_release(&hold, false, true);
            }
        }
    }
}

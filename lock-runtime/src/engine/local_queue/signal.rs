//! How a waiter is told and woken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Wake, Waker};

use lock_store::WakeUp;

use super::state::{Handoff, Inbox, Signal};

impl Signal {
    /// Waits for anything. Wakes that came since the last call are not missed.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Empties the inbox.
    pub(crate) fn take(&self) -> Inbox {
        if !self.filled.load(Ordering::Acquire) {
            return Inbox::default();
        }
        let mut inbox = self.inbox.lock();
        self.filled.store(false, Ordering::Release);
        std::mem::take(&mut inbox)
    }

    pub(super) fn take_handoff(&self) -> Option<Handoff> {
        if !self.filled.load(Ordering::Acquire) {
            return None;
        }
        self.inbox.lock().handoff.take()
    }

    pub(super) fn put(self: &Arc<Self>, change: impl FnOnce(&mut Inbox)) -> WakeUp {
        let mut inbox = self.inbox.lock();
        change(&mut inbox);
        self.filled.store(true, Ordering::Release);
        drop(inbox);
        self.wake_up()
    }

    /// Wakes the task that waits for this, without a word.
    pub(in crate::engine) fn wake_up(self: &Arc<Self>) -> WakeUp {
        WakeUp(Some(Waker::from(Arc::clone(self))))
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.notify.notify_one();
    }
}

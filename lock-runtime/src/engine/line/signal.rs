//! What reaches a waiting request, and how it is woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Instant;

use lock_store::{Link, WakeUp};
use tokio::sync::Notify;

use crate::engine::turn::Baton;

/// What reaches a waiting request.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    notify: Notify,
    inbox: Mutex<Inbox>,
    /// Whether there may be anything in the inbox; changed while that is locked.
    filled: AtomicBool,
}

/// What has arrived since the last look.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Another task of this process passed its hold on.
    pub(crate) baton: Option<Baton>,
    /// The store handed the lock over.
    pub(crate) granted: Option<Granted>,
    /// Messages may have been lost.
    pub(crate) look_again: bool,
}

/// A hand-over by the store, as it was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    /// Over which link.
    pub(crate) link: Link,
    pub(crate) token: Option<u64>,
    /// When the newest command was sent that had changed the store before, as this link has told, if one is known.
    pub(crate) after: Option<Instant>,
}

impl Signal {
    /// Waits for anything. Wakes that came since the last call are not missed.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }

    pub(crate) fn take(&self) -> Inbox {
        if !self.filled.load(Ordering::Acquire) {
            return Inbox::default();
        }
        let mut inbox = self.inbox();
        self.filled.store(false, Ordering::Release);
        std::mem::take(&mut inbox)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_baton(&self) -> Option<Baton> {
        if !self.filled.load(Ordering::Acquire) {
            return None;
        }
        self.inbox().baton.take()
    }

    pub(super) fn put(self: &Arc<Self>, change: impl FnOnce(&mut Inbox)) -> WakeUp {
        let mut inbox = self.inbox();
        change(&mut inbox);
        self.filled.store(true, Ordering::Release);
        drop(inbox);
        self.wake_up()
    }

    /// Wakes who waits for this, without a word.
    pub(in crate::engine) fn wake_up(self: &Arc<Self>) -> WakeUp {
        WakeUp(Some(Waker::from(Arc::clone(self))))
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.notify.notify_one();
    }
}

//! What reaches a waiting request, and how it is woken.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::engine::turn::Baton;
use crate::store::{Link, WakeUp};

/// What reaches a waiting request.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    notify: Arc<Notify>,
    inbox: Mutex<Inbox>,
}

/// What has arrived since the last look.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Another task of this process passed its hold on.
    pub(crate) baton: Option<Baton>,
    /// The store handed the lock over, as was told over this link, with this token.
    pub(crate) granted: Option<(Link, Option<u64>)>,
    /// Messages may have been lost.
    pub(crate) look_again: bool,
}

impl Signal {
    /// Waits for anything. Wakes that came since the last call are not missed.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }

    pub(crate) fn take(&self) -> Inbox {
        std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn take_baton(&self) -> Option<Baton> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.baton.take()
    }

    pub(super) fn put(&self, change: impl FnOnce(&mut Inbox)) -> WakeUp {
        change(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake_up()
    }

    /// Wakes who waits for this, without a word.
    pub(in crate::engine) fn wake_up(&self) -> WakeUp {
        WakeUp(Some(Arc::clone(&self.notify)))
    }
}

//! How a waiter is told and woken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Wake, Waker};

use lock_store::{Instant, WakeUp};

use super::state::{Doing, Fate, Handoff, Inbox, Post, Signal};
use crate::engine::grants::heard::HeardGrant;

impl Signal {
    pub(super) fn new(doing: Doing) -> Arc<Self> {
        let signal = Self::default();
        signal.post.lock().doing = Some(doing);
        Arc::new(signal)
    }

    /// Waits for anything. Wakes that came since the last call are not missed.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Says what the waiter does now.
    pub(crate) fn doing(&self, doing: Doing) {
        self.post.lock().doing = Some(doing);
    }

    /// Empties the inbox.
    pub(crate) fn take(&self) -> Inbox {
        self.woken.store(false, Ordering::Release);
        if !self.filled.load(Ordering::Acquire) {
            return Inbox::default();
        }
        let mut post = self.post.lock();
        self.filled.store(false, Ordering::Release);
        std::mem::take(&mut post.inbox)
    }

    /// Empties the inbox of what was heard before the store's reply. Whether that can only be
    /// explained by the store. A word that the waiter was passed over stays.
    pub(crate) fn take_before_reply(&self) -> bool {
        let mut post = self.post.lock();
        let inbox = &mut post.inbox;
        debug_assert!(inbox.handoff.is_none(), "this request is not willing");
        inbox.granted.take().is_some() | std::mem::take(&mut inbox.recheck)
    }

    pub(super) fn take_handoff(&self) -> Option<Handoff> {
        if !self.filled.load(Ordering::Acquire) {
            return None;
        }
        self.post.lock().inbox.handoff.take()
    }

    /// The waiter uses what it was granted. False if it was passed over before.
    pub(crate) fn claim(&self) -> bool {
        let mut post = self.post.lock();
        let waits = post.fate != Fate::PassedOver;
        if waits {
            post.fate = Fate::Claimed;
        }
        waits
    }

    /// Takes from a waiter what it was given, and says what it was doing. `None` if it has just used
    /// what it was given.
    pub(super) fn pass_over(&self) -> Option<(Option<Handoff>, Option<Doing>)> {
        let mut post = self.post.lock();
        if post.fate == Fate::Claimed {
            return None;
        }
        post.fate = Fate::PassedOver;
        post.inbox.granted = None;
        post.inbox.passed_over = true;
        self.filled.store(true, Ordering::Release);
        Some((post.inbox.handoff.take(), post.doing))
    }

    /// Whether the waiter would do something now if it were polled. One that is not the first need
    /// only heed what it was given.
    pub(super) fn is_late(&self, now: Instant, is_first: bool) -> bool {
        let woken = self.woken.load(Ordering::Acquire);
        if !woken && !is_first {
            return false;
        }
        let post = self.post.lock();
        let given = post.inbox.handoff.is_some() || post.inbox.granted.is_some();
        match post.doing {
            _ if !is_first && !given => false,
            Some(Doing::Asks(by, _)) => now >= by,
            Some(Doing::Sleeps(until)) => woken || now >= until,
            None => false,
        }
    }

    /// The store handed the lock over to it.
    pub(in crate::engine) fn granted(self: &Arc<Self>, granted: HeardGrant) -> WakeUp {
        self.put(|inbox| inbox.granted = Some(granted))
    }

    /// Only the store knows how things stand.
    pub(in crate::engine) fn recheck(self: &Arc<Self>) {
        drop(self.put(|inbox| inbox.recheck = true));
    }

    pub(super) fn put(self: &Arc<Self>, change: impl FnOnce(&mut Inbox)) -> WakeUp {
        let mut post = self.post.lock();
        let Post { inbox, fate, .. } = &mut *post;
        if *fate != Fate::PassedOver {
            change(inbox);
            self.filled.store(true, Ordering::Release);
        }
        drop(post);
        self.wake_up()
    }

    /// Wakes the task that waits for this, without a word.
    pub(in crate::engine) fn wake_up(self: &Arc<Self>) -> WakeUp {
        WakeUp(Some(Waker::from(Arc::clone(self))))
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.notify.notify_one();
    }
}

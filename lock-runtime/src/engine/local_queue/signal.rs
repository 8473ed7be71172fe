//! How a waiter is told and woken.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Wake, Waker};

use lock_store::{Instant, Mutex, WakeUp};

use super::state::{AskedStore, Doing, Fate, Handoff, HeardGrant, Inbox, Post, Signal};

const NOT_WOKEN: u8 = 0;
const WOKEN: u8 = 1;
/// The patrol has looked since.
const SEEN_WOKEN: u8 = 2;

/// What a waiter had that was skipped.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) handoff: Option<Handoff>,
    pub(super) asked: Option<AskedStore>,
    /// Its last command had no answer yet.
    pub(super) is_unanswered: bool,
}

impl Signal {
    pub(super) fn new(doing: Doing) -> Arc<Self> {
        let doing = Some(doing);
        Arc::new(Self {
            post: Mutex::new(Post {
                doing,
                ..Post::default()
            }),
            ..Self::default()
        })
    }

    /// Waits for anything. Wakes that came since the last call are not missed.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Says what the waiter does now.
    pub(crate) fn note_doing(&self, doing: Doing) {
        self.post.lock().doing = Some(doing);
    }

    /// The waiter asks the store. A slow store may answer later; the waiter is polled meanwhile.
    pub(crate) fn note_asking(&self, by: Instant, asked: AskedStore) {
        let mut post = self.post.lock();
        (post.doing, post.asked) = (Some(Doing::Asks(by)), Some(asked));
    }

    /// Waits for the store's answer, or until the client closes. The patrol sees that the waiter is
    /// polled.
    pub(crate) async fn poll_answer<F: Future + Unpin>(
        &self,
        mut answer: F,
        closes: impl Fn() -> bool,
    ) -> Option<F::Output> {
        poll_fn(|cx| {
            self.polls.fetch_add(1, Ordering::Relaxed);
            match Pin::new(&mut answer).poll(cx) {
                Poll::Pending if closes() => Poll::Ready(None),
                answer => answer.map(Some),
            }
        })
        .await
    }

    pub(crate) fn was_skipped(&self) -> bool {
        self.post.lock().fate == Fate::Skipped
    }

    /// Empties the inbox.
    pub(crate) fn take(&self) -> Inbox {
        self.woken.store(NOT_WOKEN, Ordering::Release);
        self.called.store(false, Ordering::Relaxed);
        if !self.filled.load(Ordering::Acquire) {
            return Inbox::default();
        }
        let mut post = self.post.lock();
        self.filled.store(false, Ordering::Release);
        std::mem::take(&mut post.inbox)
    }

    /// Empties the inbox of what was heard before the store's reply. True if there was something
    /// that only the store can have sent. A word that the waiter was skipped stays.
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

    /// The waiter uses what it was granted. False if it was skipped before.
    pub(crate) fn claim(&self) -> bool {
        let mut post = self.post.lock();
        let waits = post.fate != Fate::Skipped;
        if waits {
            post.fate = Fate::Claimed;
        }
        waits
    }

    /// Takes from a waiter what it was given, and says what it was doing. `None` if it has just
    /// used what it was given.
    pub(super) fn skip(&self) -> Option<Taken> {
        let mut post = self.post.lock();
        if post.fate == Fate::Claimed {
            return None;
        }
        post.fate = Fate::Skipped;
        post.inbox.granted = None;
        post.inbox.skipped = true;
        self.filled.store(true, Ordering::Release);
        Some(Taken {
            handoff: post.inbox.handoff.take(),
            asked: post.asked,
            is_unanswered: matches!(post.doing, Some(Doing::Asks(_))),
        })
    }

    /// The patrol looks. Whether there was something to do at its last look as well, and the waiter
    /// has done nothing since: nobody polls it. One that is not the first of its queue need only
    /// heed what it was given, or that it was called.
    pub(super) fn is_overdue(&self, now: Instant, is_first: bool) -> bool {
        let woken = self.woken.swap(SEEN_WOKEN, Ordering::AcqRel);
        if woken == NOT_WOKEN {
            let _ = self.woken.compare_exchange(
                SEEN_WOKEN,
                NOT_WOKEN,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
        let mut post = self.post.lock();
        let doing = (post.doing, self.polls.load(Ordering::Relaxed));
        let since_last_look = post.seen == doing;
        post.seen = doing;
        let was_given = post.inbox.handoff.is_some() || post.inbox.granted.is_some();
        let is_due = is_first || was_given || self.called.load(Ordering::Relaxed);
        match post.doing {
            Some(Doing::Asks(by)) => since_last_look && now >= by,
            _ if !is_due => false,
            Some(Doing::Looks(by)) => since_last_look && now >= by,
            Some(Doing::Sleeps(until)) => woken == SEEN_WOKEN || (since_last_look && now >= until),
            None => false,
        }
    }

    /// The store handed the lock over to it.
    pub(in crate::engine) fn on_granted(self: &Arc<Self>, granted: HeardGrant) -> WakeUp {
        self.put(|inbox| inbox.granted = Some(granted))
    }

    /// Only the store knows how things stand.
    pub(in crate::engine) fn recheck(self: &Arc<Self>) {
        drop(self.put(|inbox| inbox.recheck = true));
    }

    pub(super) fn put(self: &Arc<Self>, change: impl FnOnce(&mut Inbox)) -> WakeUp {
        let mut post = self.post.lock();
        let Post { inbox, fate, .. } = &mut *post;
        // No hand-off comes here: a task hands off only to a waiter that is in the queue.
        if *fate != Fate::Skipped {
            change(inbox);
            self.filled.store(true, Ordering::Release);
        }
        drop(post);
        self.wake_up()
    }

    /// Wakes a waiter that is to show that it is polled, wherever it stands.
    pub(super) fn call(self: &Arc<Self>) -> WakeUp {
        self.called.store(true, Ordering::Relaxed);
        self.wake_up()
    }

    /// Wakes the task that waits for this, without a word.
    pub(in crate::engine) fn wake_up(self: &Arc<Self>) -> WakeUp {
        WakeUp(Some(Waker::from(Arc::clone(self))))
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        // One that the patrol has seen stays seen, until the waiter reacts.
        let _ = self
            .woken
            .compare_exchange(NOT_WOKEN, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        self.notify.notify_one();
    }
}

#[cfg(test)]
mod tests;

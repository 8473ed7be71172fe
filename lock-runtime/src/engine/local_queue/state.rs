//! What a local queue consists of.
//!
//! These types form a ring: a queue has entries, the inbox of an entry may hold a handoff, a
//! handoff carries the tenure, and the tenure's marker counts in the queue. So they stand in one
//! file. What each of them does is in the file of its name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lock_store::{Instant, Link, LockKey, Mutex, Owner};
use tokio::sync::Notify;

use crate::engine::fencing::window::TokenWindow;

/// One key's queue. It is in the table as long as there is anything in it. Whatever enters an empty
/// one does so under the table's lock, which is taken before the queue's own.
#[derive(Debug)]
pub(super) struct LocalQueue {
    pub(super) key: LockKey,
    pub(super) state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
pub(super) struct QueueState {
    pub(super) entries: QueueEntries,
    /// Releases under way in the background.
    pub(super) releasing: usize,
    /// Holds of this process that may be passed on.
    pub(super) tenures: usize,
    /// The ticket of the last handoff's waiter, and when that was.
    pub(super) passed: Option<(u64, Instant)>,
    /// Wakes requests that wait until no release is under way.
    pub(super) settled: Option<Arc<Notify>>,
}

/// Entries by their tickets, which rise.
#[derive(Debug, Default)]
pub(super) struct QueueEntries(pub(super) VecDeque<(u64, QueueEntry)>);

/// What the queue knows of one waiter.
#[derive(Debug)]
pub(super) struct QueueEntry {
    pub(super) signal: Arc<Signal>,
    /// The waiter takes a handoff: it has not asked the store yet.
    pub(super) willing: bool,
    /// The waiter did not take its handoff, and has not been polled since.
    pub(super) asleep: bool,
}

/// What reaches a waiter, and wakes it.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    pub(super) notify: Notify,
    pub(super) inbox: Mutex<Inbox>,
    /// Whether there may be anything in the inbox; changed while that is locked.
    pub(super) filled: AtomicBool,
}

/// What has arrived since the inbox was last emptied.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Another task of this process passed its hold on.
    pub(crate) handoff: Option<Handoff>,
    /// The store handed the lock over.
    pub(crate) granted: Option<HeardGrant>,
    /// Messages may have been lost: only the store knows how things stand.
    pub(crate) recheck: bool,
}

/// A hand-over by the store, as it was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardGrant {
    /// The link that told it.
    pub(crate) link: Link,
    pub(crate) token: Option<u64>,
    /// The store had carried out a command sent then when it told this, if one is known.
    pub(crate) after: Option<Instant>,
}

/// The process's tenure of a key: what it has in the store, whichever of its tasks uses it.
#[derive(Debug)]
pub(crate) struct Tenure {
    /// The owner of the key in the store.
    pub(super) owner: Owner,
    /// When the process got the key from the store.
    pub(super) began: Instant,
    /// How many handoffs there were since.
    pub(super) handoffs: u32,
    /// The store keeps the key at most until then, as far as this process has asked for.
    pub(super) lasts_until: Instant,
    /// The end of the first lease, if the store handed the key over. The rest of the lease is asked
    /// for soon.
    pub(super) handed_until: Option<Instant>,
    pub(super) tokens: TokenWindow,
    pub(super) marker: HandoffMarker,
}

/// A hold on its way from one task to the next.
#[derive(Debug)]
pub(crate) struct Handoff {
    pub(super) tenure: Box<Tenure>,
    /// The hold can be trusted until then.
    pub(super) deadline: Instant,
}

/// The process has a hold of the key that may be passed on. When the marker goes, the first waiter
/// asks the store.
#[derive(Debug)]
pub(crate) struct HandoffMarker {
    pub(super) queue: Arc<LocalQueue>,
}

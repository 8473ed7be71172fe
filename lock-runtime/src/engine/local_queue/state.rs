//! What a local queue consists of.
//!
//! These types form a ring: a queue has entries, the inbox of an entry may hold a handoff, a
//! handoff carries the tenure, and the tenure's marker counts in the queue. So they stand in one
//! file. What each of them does is in the file of its name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};
use std::time::Duration;

use lock_store::{Instant, Link, LockKey, Mutex, Owner, Permits, Trust};
use tokio::sync::Notify;

use crate::engine::fencing::window::TokenWindow;
use crate::engine::liveness::key::KeyLiveness;

/// One key's queue. It is in the table as long as there is anything in it. Whatever enters an empty
/// one does so under the table's lock, which is taken before the queue's own.
#[derive(Debug)]
pub(crate) struct LocalQueue {
    pub(super) key: LockKey,
    pub(super) state: Mutex<QueueState>,
    /// What the store has said to those that wait.
    pub(in crate::engine) liveness: KeyLiveness,
}

#[derive(Debug, Default)]
pub(super) struct QueueState {
    pub(super) entries: QueueEntries,
    /// Releases under way in the background.
    pub(super) releasing: usize,
    /// Holds of this process that may be handed off.
    pub(super) tenures: usize,
    /// Whether the patrol looks after this queue.
    pub(super) patrolled: bool,
    /// How many waiters were skipped since one last left by itself.
    pub(super) skipped: usize,
    /// Wakes requests that wait until no release is under way.
    pub(super) released: Option<Arc<Notify>>,
}

/// Entries by their tickets, which rise.
#[derive(Debug, Default)]
pub(super) struct QueueEntries(pub(super) VecDeque<(u64, QueueEntry)>);

/// What the queue knows of one waiter.
#[derive(Debug)]
pub(super) struct QueueEntry {
    pub(super) signal: Arc<Signal>,
    pub(super) request: QueuedRequest,
    /// The waiter takes a handoff: it has not asked the store yet.
    pub(super) willing: bool,
    /// How many looks of the patrol in a row found something for the waiter to do.
    pub(super) missed: u32,
}

/// Under which names the store knows a waiter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) owner: Owner,
    pub(crate) permits: Option<Permits>,
    pub(crate) lease: Duration,
    /// When it was asked for.
    pub(crate) since: Instant,
}

/// What reaches a waiter, and wakes it.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    pub(super) notify: Notify,
    pub(super) post: Mutex<Post>,
    /// Whether there may be anything in the inbox; changed while that is locked.
    pub(super) filled: AtomicBool,
    /// Whether it was woken and has not reacted yet.
    pub(super) woken: AtomicU8,
    /// Whether it is to show that it is polled, though it is not the first.
    pub(super) called: AtomicBool,
    /// How often it was polled while it asked the store.
    pub(super) polls: AtomicU32,
}

/// What is on its way to a waiter, and what the waiter does meanwhile.
#[derive(Debug, Default)]
pub(super) struct Post {
    pub(super) inbox: Inbox,
    pub(super) doing: Option<Doing>,
    /// What it did at the patrol's last look, and how often it had been polled.
    pub(super) seen: (Option<Doing>, u32),
    /// As which request the store may know it.
    pub(super) asked: Option<AskedStore>,
    pub(super) fate: Fate,
}

/// A command that was sent for a waiter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedStore {
    pub(crate) link: Link,
    /// How many fencing tokens were asked for, and how long it waits: parts of its place's name.
    pub(crate) tokens: u32,
    pub(crate) wait: Option<Duration>,
}

/// What a waiter does, if it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It waits for an answer of the store to its acquire. After this time it is polled all the
    /// same, if a slow store takes longer.
    Asks(Instant),
    /// It has somebody look at the key, until then.
    Looks(Instant),
    /// It sleeps, until then or until it is woken.
    Sleeps(Instant),
}

/// Who decides what becomes of a waiter: what it was granted is used once or given back once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    #[default]
    Waits,
    /// It has made a hold of what it was granted.
    Claimed,
    /// Nobody polled it. Its place is gone, and what it was granted is given back.
    Skipped,
}

/// What has arrived since the inbox was last emptied.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Another task of this process handed its hold off.
    pub(crate) handoff: Option<Handoff>,
    /// The store handed the lock over.
    pub(crate) granted: Option<HeardGrant>,
    /// Messages may have been lost: only the store knows how things stand.
    pub(crate) recheck: bool,
    /// The waiter has lost its place, because nobody polled it.
    pub(crate) skipped: bool,
}

/// A hand-over by the store, as it was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardGrant {
    /// How it is to be trusted.
    pub(crate) trust: Trust,
    pub(crate) token: Option<u64>,
    /// If known, and the link's order counts: when it told this, the store had carried out a
    /// command that was sent then.
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
    /// For how long the store allowed trust when it was last asked, if that is less than the lease.
    pub(super) allowed: Option<Duration>,
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

/// The process has a hold of the key that may be handed off. When the marker goes, the first waiter
/// asks the store.
#[derive(Debug)]
pub(crate) struct HandoffMarker {
    pub(super) queue: Arc<LocalQueue>,
}

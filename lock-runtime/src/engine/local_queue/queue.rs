//! One key's queue, and its entries.

use std::sync::Arc;

use lock_store::{LockKey, Mutex};

use super::state::{LocalQueue, QueueEntries, QueueEntry, QueueState, QueuedRequest, Signal};
use crate::engine::liveness::key::KeyLiveness;

/// An empty queue keeps room for this many entries.
const EMPTY_ENTRIES: usize = 64;

impl LocalQueue {
    /// A queue that is in no table.
    pub(crate) fn apart(key: LockKey) -> Arc<Self> {
        Arc::new(Self {
            key,
            state: Mutex::default(),
            liveness: KeyLiveness::default(),
        })
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.state.lock().entries.0.is_empty()
    }

    /// There may be something to do for the first.
    pub(crate) fn wake_first(&self) {
        let state = self.state.lock();
        let first = state.first().map(|(_, first)| first.signal.wake_up());
        drop(state);
        drop(first);
    }
}

/// A release of the key is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Releasing {
    pub(super) queue: Arc<LocalQueue>,
}

impl Drop for Releasing {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.releasing -= 1;
        let ended = (state.releasing == 0).then(|| {
            let first = state.first().map(|(_, first)| first.signal.wake_up());
            (state.released.take(), first)
        });
        drop(state);
        if let Some((released, first)) = ended {
            if let Some(released) = released {
                released.notify_waiters();
            }
            drop(first);
        }
    }
}

impl QueueState {
    pub(super) fn first(&self) -> Option<&(u64, QueueEntry)> {
        self.entries.0.front()
    }

    /// Whether the waiter is the first, and no release of the key is under way.
    pub(super) fn is_first(&self, ticket: u64) -> bool {
        self.releasing == 0 && self.first().is_some_and(|(first, _)| *first == ticket)
    }

    /// Whether no task of this process waits for or is releasing the key.
    pub(super) fn is_idle(&self) -> bool {
        self.entries.0.is_empty() && self.releasing == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.is_idle() && self.tenures == 0
    }
}

impl QueueEntry {
    pub(super) fn new(signal: &Arc<Signal>, request: QueuedRequest, willing: bool) -> Self {
        Self {
            signal: Arc::clone(signal),
            request,
            willing,
            missed: 0,
        }
    }
}

impl QueueEntries {
    fn find(&self, ticket: u64) -> Option<usize> {
        self.0.binary_search_by_key(&ticket, |(one, _)| *one).ok()
    }

    pub(super) fn get_mut(&mut self, ticket: u64) -> Option<&mut QueueEntry> {
        let at = self.find(ticket)?;
        self.0.get_mut(at).map(|(_, entry)| entry)
    }

    /// Immediate at either end, where nearly every waiter leaves; in the middle, the shorter side
    /// moves up.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<QueueEntry> {
        let at = self.find(ticket)?;
        let removed = self.0.remove(at);
        if self.0.is_empty() {
            self.0.shrink_to(EMPTY_ENTRIES);
        }
        removed.map(|(_, entry)| entry)
    }
}

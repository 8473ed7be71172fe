//! The tasks of this process that wait for one latch, and what they share.
//!
//! However many wait, they are one to the store: one place among its waiters, and one look now and
//! then.

use std::collections::HashMap;
use std::sync::Arc;

use lock_store::{LockKey, Mutex};

use super::view::SharedView;
use crate::engine::liveness::Liveness;
use crate::engine::local_queue::Signal;

/// The watches of a client: one for each latch that a task waits for.
#[derive(Debug)]
pub(crate) struct LatchWatches {
    /// The client's.
    liveness: Arc<Liveness>,
    watches: Mutex<HashMap<LockKey, Watched>>,
}

#[derive(Debug)]
struct Watched {
    watch: Arc<LatchWatch>,
    /// How many came since the watch began: the number of the last one.
    came: u64,
    waiting: usize,
}

/// What a latch's waiters and its watcher have in common.
#[derive(Debug)]
pub(super) struct LatchWatch {
    /// What looks at it have come to.
    pub(super) liveness: Arc<Liveness>,
    /// Calls the watcher: the store has sent a message, or a waiter came or left.
    pub(super) signal: Arc<Signal>,
    pub(super) view: SharedView,
}

impl LatchWatches {
    pub(in crate::engine) fn new(liveness: &Arc<Liveness>) -> Self {
        Self {
            liveness: Arc::clone(liveness),
            watches: Mutex::default(),
        }
    }

    fn watch(&self) -> LatchWatch {
        LatchWatch {
            liveness: Arc::new(Liveness::of_latch(&self.liveness)),
            signal: Arc::default(),
            view: SharedView::default(),
        }
    }

    /// Counts one more waiter: its number, and what it shares with the others. If it is the first,
    /// `start` must see to the latch's watcher.
    pub(super) fn enter(
        &self,
        key: &LockKey,
        start: impl FnOnce(&Arc<LatchWatch>),
    ) -> (u64, Arc<LatchWatch>) {
        let mut watches = self.watches.lock();
        let first = !watches.contains_key(key);
        let watched = watches.entry(key.clone()).or_insert_with(|| Watched {
            watch: Arc::new(self.watch()),
            came: 0,
            waiting: 0,
        });
        watched.came += 1;
        watched.waiting += 1;
        let entered = (watched.came, Arc::clone(&watched.watch));
        drop(watches);
        if first {
            start(&entered.1);
        } else {
            drop(entered.1.signal.wake_up());
        }
        entered
    }

    /// Counts one waiter less. The last one wakes the watcher, which ends.
    pub(super) fn leave(&self, key: &LockKey) {
        let mut watches = self.watches.lock();
        let last = watches.get_mut(key).and_then(|watched| {
            watched.waiting -= 1;
            (watched.waiting == 0).then(|| Arc::clone(&watched.watch))
        });
        drop(watches);
        if let Some(watch) = last {
            drop(watch.signal.wake_up());
        }
    }

    /// For the watcher: the number of the last waiter. `None` if none is left; then the watch is
    /// over.
    pub(super) fn last_waiter(&self, key: &LockKey) -> Option<u64> {
        let mut watches = self.watches.lock();
        let watched = watches.get(key)?;
        if watched.waiting == 0 {
            watches.remove(key);
            return None;
        }
        Some(watched.came)
    }

    /// Calls `note` with the keys of all latches that are waited for.
    pub(in crate::engine) fn each_key(&self, note: &mut impl FnMut(&LockKey)) {
        self.watches.lock().keys().for_each(note);
    }

    /// How many wait, for all latches.
    pub(crate) fn waiting(&self) -> usize {
        self.watches.lock().values().map(|one| one.waiting).sum()
    }
}

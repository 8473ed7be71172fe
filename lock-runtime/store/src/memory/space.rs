//! The locks of one namespace.

use std::sync::Arc;

use super::lock::MemoryLock;
use crate::instant::Instant;
use crate::{LockKey, SweepingMap};

#[derive(Debug)]
pub(super) struct Space {
    pub(super) namespace: Arc<str>,
    locks: SweepingMap<LockKey, MemoryLock>,
}

impl Space {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            locks: SweepingMap::default(),
        }
    }

    pub(super) fn get(&self, key: &LockKey) -> Option<&MemoryLock> {
        self.locks.get(key)
    }

    /// The lock, free if it is new. `micros` is the time on the server's clock.
    pub(super) fn lock(&mut self, key: &LockKey, now: Instant, micros: u64) -> &mut MemoryLock {
        self.locks.sweep(|lock| !lock.is_idle(now, micros));
        self.locks.entry(key.clone()).or_default()
    }

    pub(super) fn clear(&mut self) {
        self.locks.clear();
    }

    /// The number of holds and places in queues, without expired ones.
    pub(super) fn leftovers(&self, now: Instant) -> usize {
        let count = |lock: &MemoryLock| lock.holders.live(now) + lock.queue.lasting(now);
        self.locks.values().map(count).sum()
    }
}

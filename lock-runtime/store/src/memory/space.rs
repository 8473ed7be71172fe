//! The locks of one namespace.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;

use super::lock::Lock;
use crate::key::LockKey;

/// So many locks may be idle, or twice as many as are not.
const IDLE_LOCKS: usize = 256;

#[derive(Debug)]
pub(super) struct Space {
    pub(super) namespace: Arc<str>,
    locks: HashMap<LockKey, Lock, RandomState>,
    /// After so many requests, idle ones are forgotten.
    sweep_in: usize,
}

impl Space {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            locks: HashMap::default(),
            sweep_in: IDLE_LOCKS,
        }
    }

    pub(super) fn get(&self, key: &LockKey) -> Option<&Lock> {
        self.locks.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &LockKey) -> Option<&mut Lock> {
        self.locks.get_mut(key)
    }

    /// The lock, free if it is new. `micros` is what the server's clock says.
    pub(super) fn lock(&mut self, key: &LockKey, now: Instant, micros: u64) -> &mut Lock {
        self.sweep(now, micros);
        self.locks.entry(key.clone()).or_default()
    }

    fn sweep(&mut self, now: Instant, micros: u64) {
        self.sweep_in -= 1;
        if self.sweep_in > 0 {
            return;
        }
        if self.locks.len() > IDLE_LOCKS {
            self.locks.retain(|_, lock| !lock.is_idle(now, micros));
            self.locks.shrink_to(IDLE_LOCKS.max(2 * self.locks.len()));
        }
        self.sweep_in = IDLE_LOCKS.max(2 * self.locks.len());
    }

    pub(super) fn clear(&mut self) {
        self.locks.clear();
    }

    /// How many holds and places in queues there are, expired ones not counted.
    pub(super) fn leftovers(&self, now: Instant) -> usize {
        let count = |lock: &Lock| lock.holders.live(now) + lock.queue.len();
        self.locks.values().map(count).sum()
    }
}

//! [`SweepingMap`]: entries stay for their next use, and are removed when there are many.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

use foldhash::fast::RandomState;

/// This many idle entries may stay, or twice as many as are in use.
const IDLE: usize = 256;

/// A map that removes its idle entries now and then: so seldom that each use costs the check of at
/// most one entry.
#[derive(Debug)]
pub struct SweepingMap<K, V> {
    entries: HashMap<K, V, RandomState>,
    /// Uses until the next sweep.
    sweep_in: usize,
}

impl<K, V> Default for SweepingMap<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::default(),
            sweep_in: IDLE,
        }
    }
}

impl<K: Eq + Hash, V> SweepingMap<K, V> {
    /// Counts one use. After enough uses, removes the entries that are not `in_use`.
    pub fn sweep(&mut self, mut in_use: impl FnMut(&mut V) -> bool) {
        self.sweep_in -= 1;
        if self.sweep_in > 0 {
            return;
        }
        if self.entries.len() > IDLE {
            self.entries.retain(|_, entry| in_use(entry));
            let room = IDLE.max(2 * self.entries.len());
            self.entries.shrink_to(room);
        }
        self.sweep_in = IDLE.max(2 * self.entries.len());
    }
}

impl<K, V> Deref for SweepingMap<K, V> {
    type Target = HashMap<K, V, RandomState>;

    fn deref(&self) -> &Self::Target {
        &self.entries
    }
}

impl<K, V> DerefMut for SweepingMap<K, V> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_entries_are_forgotten_and_used_ones_stay() {
        let mut map = SweepingMap::default();
        for key in 0..100_000_u32 {
            map.sweep(|used| *used);
            map.insert(key, key % 1000 == 0);
        }
        assert!(map.len() < 1000, "{}", map.len());
        assert!((0..100).all(|thousand| map.contains_key(&(thousand * 1000))));
    }

    #[test]
    fn a_few_idle_entries_stay_for_their_next_use() {
        let mut map = SweepingMap::default();
        for round in 0..10_000_u32 {
            map.sweep(|_| false);
            map.insert(round % 256, ());
        }
        assert_eq!(map.len(), 256);
    }
}

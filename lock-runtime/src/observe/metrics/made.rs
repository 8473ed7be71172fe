//! [`Made`]: what is made once for each key, and found again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;
use lock_store::Mutex;

/// Values that are made once for each key. Nobody outside the program chooses the keys, so that a
/// fast hash will do.
#[derive(Debug)]
pub(super) struct Made<K, V>(Mutex<HashMap<K, Arc<V>, RandomState>>);

impl<K, V> Default for Made<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash, V> Made<K, V> {
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut made = self.0.lock();
        Arc::clone(made.entry(key).or_insert_with(|| Arc::new(make())))
    }

    pub(super) fn keys(&self) -> Vec<K> {
        self.0.lock().keys().copied().collect()
    }
}

//! [`Made`]: what is made once for each key, and found again.

use foldhash::fast::RandomState;

/// What is made once for each key, and then looked up by many threads without a lock: with one,
/// each event of two busy threads waited for the other's. A value that lost a race is dropped.
/// Nobody outside the program chooses the keys, so that a fast hash will do.
pub(super) type Made<K, V> = papaya::HashMap<K, V, RandomState>;

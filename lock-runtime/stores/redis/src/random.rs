//! Random pauses, so that clients that failed together do not retry together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// A random time below this limit.
pub(crate) fn below(limit: Duration) -> Duration {
    let share = RandomState::new().hash_one(()) % 1024;
    limit * u32::try_from(share).unwrap_or(0) / 1024
}

//! Random pauses, so that clients which failed together do not try again together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Some time below this, another each time.
pub(crate) fn below(limit: Duration) -> Duration {
    let share = RandomState::new().hash_one(()) % 1024;
    limit * u32::try_from(share).unwrap_or(0) / 1024
}

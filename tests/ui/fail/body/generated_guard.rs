//! A name of the expansion is not there.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work() -> Result<u8, LockError> {
    Ok(__lock_guard)
}

fn main() {}

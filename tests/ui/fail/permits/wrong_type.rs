//! An expression that gives something else than a `u32`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = limit)]
async fn work(limit: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

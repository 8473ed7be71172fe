//! An exclusive lock and a semaphore.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", mode = "exclusive", permits = 5)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

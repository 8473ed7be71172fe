//! A read-write lock and a semaphore.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", mode = "read", permits = 5)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

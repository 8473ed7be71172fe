//! A semaphore that lets nobody in.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = 0)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

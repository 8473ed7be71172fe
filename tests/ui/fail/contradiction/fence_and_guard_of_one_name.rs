//! One name for two things.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fence = lock, guard = lock)]
async fn work() -> Result<(), LockError> {
    let _ = lock;
    Ok(())
}

fn main() {}

//! `guard` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", guard = lock, guard = lock)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

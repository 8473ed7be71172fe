//! A hold that ends before any lease.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", max_hold = "1ms")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

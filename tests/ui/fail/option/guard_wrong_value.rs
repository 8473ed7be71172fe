//! A wrong value of `guard`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", guard = 1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

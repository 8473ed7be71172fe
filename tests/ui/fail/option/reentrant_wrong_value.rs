//! A wrong value of `reentrant`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", reentrant = 1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

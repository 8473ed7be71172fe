//! `reentrant` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", reentrant = true, reentrant = true)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

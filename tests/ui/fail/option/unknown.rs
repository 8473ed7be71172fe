//! An option that is none, nor nearly one.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", banana = 1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

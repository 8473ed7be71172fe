//! A word.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "never")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

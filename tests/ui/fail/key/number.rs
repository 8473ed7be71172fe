//! A number as a key.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = 1.5)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

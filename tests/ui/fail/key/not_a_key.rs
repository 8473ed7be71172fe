//! An expression that is not a key.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = id)]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

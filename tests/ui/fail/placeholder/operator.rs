//! An expression that a placeholder can't be.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<id + 1>")]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A token that hides a parameter.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<id>", fence = id)]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

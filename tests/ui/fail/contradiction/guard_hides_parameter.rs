//! A guard that hides a name of a pattern.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", guard = sku)]
async fn work((sku, _): (u64, u64)) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

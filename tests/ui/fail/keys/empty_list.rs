//! No key at all.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = [])]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! An empty key.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! An option as another library calls it.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", ttl = "10s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

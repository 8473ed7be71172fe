//! The guard is not there without `guard`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work() -> Result<u8, LockError> {
    Ok(guard)
}

fn main() {}

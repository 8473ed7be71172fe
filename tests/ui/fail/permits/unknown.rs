//! A name that is not there.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = limti)]
async fn work(limit: u32) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

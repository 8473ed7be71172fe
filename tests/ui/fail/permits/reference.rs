//! A number behind a reference.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = limit)]
async fn work(limit: &u32) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

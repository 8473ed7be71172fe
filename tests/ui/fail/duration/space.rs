//! A space.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "3 s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `fence` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fence = token, fence = token)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! An empty duration.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

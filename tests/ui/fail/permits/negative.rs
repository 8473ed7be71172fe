//! Less than nobody.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = -1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `wait` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "3s", wait = "3s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

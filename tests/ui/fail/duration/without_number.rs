//! A unit without its number.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

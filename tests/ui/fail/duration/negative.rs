//! A negative one.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "-1s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

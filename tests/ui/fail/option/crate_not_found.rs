//! A path that leads nowhere.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "10s", wait = "1s", crate = nowhere::lock)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

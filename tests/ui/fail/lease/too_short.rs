//! A lease that is over before anything can happen.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "9ms")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

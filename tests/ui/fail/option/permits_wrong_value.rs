//! A wrong value of `permits`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = "5")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A wrong value of `mode`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", mode = "shared")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

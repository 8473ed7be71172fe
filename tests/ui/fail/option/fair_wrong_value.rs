//! A wrong value of `fair`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fair = "true")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

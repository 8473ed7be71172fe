//! A wrong value of `hold_at_least`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", hold_at_least = "5")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

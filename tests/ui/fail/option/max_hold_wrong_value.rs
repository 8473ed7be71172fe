//! A wrong value of `max_hold`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", max_hold = 300)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

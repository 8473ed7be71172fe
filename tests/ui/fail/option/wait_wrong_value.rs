//! A wrong value of `wait`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = 3)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

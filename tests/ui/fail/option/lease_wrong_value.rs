//! A wrong value of `lease`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = 10)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

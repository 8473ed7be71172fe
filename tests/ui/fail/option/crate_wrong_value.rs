//! A wrong value of `crate`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", crate = "lock_runtime")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A wrong value of `key`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = 42)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A wrong value of `keys`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = "a")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

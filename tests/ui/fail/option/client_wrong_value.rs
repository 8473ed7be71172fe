//! A wrong value of `client`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", client = "global")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `keys` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = ["a", "b"], keys = ["a", "b"])]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `key` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "b", key = "b")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `mode` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", mode = "read", mode = "read")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

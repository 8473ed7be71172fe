//! No key, and no parameters.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(lease = "10s")]
async fn deduct() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

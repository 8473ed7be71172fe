//! A lease of zero.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "0s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

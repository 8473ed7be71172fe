//! Two options without a comma.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a" lease = "10s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

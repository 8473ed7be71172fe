//! `fence` without a value.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fence, fair = true)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

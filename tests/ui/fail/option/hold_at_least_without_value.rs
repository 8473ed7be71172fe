//! `hold_at_least` without a value.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", hold_at_least, fair = true)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

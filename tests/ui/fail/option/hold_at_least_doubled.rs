//! `hold_at_least` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", hold_at_least = "5s", hold_at_least = "5s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

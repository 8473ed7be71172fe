//! A duration that no number holds.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", hold_at_least = "99999999999999999999h")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! The end of a renewal that a lease has switched off.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "10s", max_hold = "5m")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

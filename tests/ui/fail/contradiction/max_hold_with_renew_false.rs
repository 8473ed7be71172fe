//! The end of a renewal that is switched off.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", renew = false, max_hold = "5m")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

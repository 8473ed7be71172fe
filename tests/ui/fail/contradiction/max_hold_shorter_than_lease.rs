//! A hold that ends before its lease.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "10s", renew = true, max_hold = "9s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

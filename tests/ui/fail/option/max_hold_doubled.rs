//! `max_hold` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(
    key = "a",
    lease = "1s",
    renew = true,
    max_hold = "5m",
    max_hold = "5m"
)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

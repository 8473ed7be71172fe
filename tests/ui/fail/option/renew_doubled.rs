//! `renew` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", renew = true, renew = true)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

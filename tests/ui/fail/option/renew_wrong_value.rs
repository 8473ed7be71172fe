//! A wrong value of `renew`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", renew = "yes")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

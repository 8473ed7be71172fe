//! A mistake in this attribute above the lock's is said once.

use lock_runtime::{LockError, distributed_lock, rate_limited};

#[rate_limited(key = "a", rate = "1/s", burst = 0)]
#[distributed_lock(key = "b")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A mistake in the lock's attribute below is said once.

use lock_runtime::{LockError, distributed_lock, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
#[distributed_lock(key = "b", lease = "10")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

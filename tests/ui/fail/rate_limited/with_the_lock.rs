//! A mistake in one of the two attributes is reported once.

use lock_runtime::{LockError, distributed_lock, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
#[distributed_lock(key = "b", lease = "10")]
async fn above_a_faulty_lock() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = 0)]
#[distributed_lock(key = "b")]
async fn faulty_above_the_lock() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

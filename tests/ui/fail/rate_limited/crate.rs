//! Mistakes in `crate` of the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", crate = lock_runtime, crate = lock_runtime)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", crate)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", crate = "lock_runtime")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! Mistakes in `wait` of the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", wait = "1s", wait = "1s")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", wait)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", wait = 3)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", wait = "forever")]
async fn forever() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", wait = 5 * 1000)]
async fn not_a_duration() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

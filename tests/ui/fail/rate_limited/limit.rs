//! Mistakes in `limit` of the rate limiter.

use std::time::Duration;

use lock_runtime::{LockError, Rate, distributed_lock, rate_limited};

const LIMIT: Rate = Rate::at_most(5, Duration::from_secs(1));

#[rate_limited(key = "a", limit = "5/1s", limit = "5/1s")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit = 100)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit = LIMIT)]
async fn an_expression() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit = "100")]
async fn without_time() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit = "10001/1s")]
async fn too_many() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit = "1/721h")]
async fn too_long() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit = "5/1s", rate = "5/s")]
async fn with_a_rate() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", limit = "5/1s", burst = 1)]
async fn with_a_burst() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", limit = 5)]
async fn of_a_lock() -> Result<(), LockError> {
    Ok(())
}

fn main() {
    let _ = LIMIT;
}

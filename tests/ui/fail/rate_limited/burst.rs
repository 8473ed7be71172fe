//! Mistakes in `burst` of the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", burst = 1, burst = 1)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = "20")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = 0)]
async fn zero() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = -1)]
async fn negative() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = 4294967296)]
async fn above_u32() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/h", burst = 721)]
async fn longer_than_30_days() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = apps.len())]
async fn not_a_u32(apps: &[u64]) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

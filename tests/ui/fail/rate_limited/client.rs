//! Mistakes in `client` of the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", client = c, client = c)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", client)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", client = 'c')]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", client = 1 + 1)]
async fn not_a_client() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

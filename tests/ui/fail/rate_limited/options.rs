//! Mistakes in the list of options of the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", banana = 1)]
async fn unknown() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rte = "1/s")]
async fn misspelt() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", max_burst = 4)]
async fn from_elsewhere() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", lease = "10s")]
async fn of_the_lock() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", "100/s")]
async fn without_name() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

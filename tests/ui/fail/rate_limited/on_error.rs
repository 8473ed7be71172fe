//! Mistakes in `on_error` of the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", on_error = f, on_error = f)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", on_error)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", on_error = "f")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", on_error = |error| error.to_string())]
async fn wrong_type() -> u32 {
    1
}

fn main() {}

//! Mistakes in `key` of the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(rate = "1/s", key = "a", key = "a")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(rate = "1/s", key)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(rate = "1/s", key = 1)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(rate = "1/s")]
async fn missing(app_id: u64) -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(rate = "1/s")]
async fn missing_without_parameters() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = app_id, rate = "1/s")]
async fn not_a_key(app_id: u64) -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "api:<ap_id>", rate = "1/s")]
async fn placeholder_misspelt(app_id: u64) -> Result<(), LockError> {
    Ok(())
}

struct Opaque;

#[rate_limited(key = "a:<opaque>", rate = "1/s")]
async fn placeholder_not_display(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

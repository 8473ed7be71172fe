//! Mistakes in `rate` of the rate limiter.

use lock_runtime::{LockError, Rate, rate_limited};

#[rate_limited(key = "a", rate = "1/s", rate = "1/s")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = 100)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a")]
async fn missing() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "0/s")]
async fn zero() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "")]
async fn empty() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "100")]
async fn without_time() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "0.5/s")]
async fn fraction() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "100 per s")]
async fn in_words() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "100/min")]
async fn per_min() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "10/day")]
async fn per_day() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "10000000/s")]
async fn too_fast() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/721h")]
async fn longer_than_30_days() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = limit)]
async fn not_a_rate(limit: u32) -> Result<(), LockError> {
    Ok(())
}

fn rate_of(_: String) -> Rate {
    Rate::per_second(1)
}

#[rate_limited(key = "a", rate = rate_of(app))]
async fn takes_what_the_body_takes(app: String) -> Result<String, LockError> {
    Ok(app)
}

fn main() {}

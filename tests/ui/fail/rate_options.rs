//! `#[rate_limited]`: each option given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, rate_limited};

type Result<T> = std::result::Result<T, LockError>;

#[rate_limited(
    key = "a", key = "b",
    rate = "1/s", rate = "2/s",
    burst = 1, burst = 2,
    wait = "1s", wait = "2s",
    on_error = f, on_error = g,
    client = c, client = d,
    crate = lock_runtime, crate = lock_runtime,
)]
async fn doubled() -> Result<()> {
    Ok(())
}

#[rate_limited(key = 1, rate = 100, burst = "20", wait = 3, on_error = "f", client = 'c', crate = "lock_runtime")]
async fn wrong() -> Result<()> {
    Ok(())
}

#[rate_limited(key, rate, burst, wait, on_error, client, crate)]
async fn without_value() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = 0)]
async fn no_burst() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = -1)]
async fn negative() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", burst = 4294967296)]
async fn too_many() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/h", burst = 721)]
async fn too_long() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/721h")]
async fn too_slow() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s", wait = "forever")]
async fn forever() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = slow, burst = "many".len())]
async fn of_the_wrong_type(slow: u32) -> Result<()> {
    Ok(())
}

fn main() {}

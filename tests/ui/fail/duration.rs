//! Durations and their limits.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", lease = "0s")]
async fn zero_lease() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "9ms")]
async fn short_lease() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "24h1ms")]
async fn long_lease() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10", wait = "1.5s", hold_at_least = "10sec")]
async fn bad_forms() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "", wait = "never", hold_at_least = "99999999999999999999h")]
async fn more_bad_forms() -> Result<()> {
    Ok(())
}

fn main() {}

//! Mistakes in `max_hold`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(
    key = "a",
    lease = "1s",
    renew = true,
    max_hold = "5m",
    max_hold = "5m"
)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", max_hold, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", max_hold = 300)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", max_hold = 5 * 1000)]
async fn not_a_duration() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

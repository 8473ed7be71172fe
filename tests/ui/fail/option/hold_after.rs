//! Mistakes in `hold_after`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(
    key = "a",
    hold_at_least = "5s",
    hold_after = "success",
    hold_after = "success"
)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least = "5s", hold_after, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least = "5s", hold_after = "failure")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_after = "success")]
async fn without_hold_at_least() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

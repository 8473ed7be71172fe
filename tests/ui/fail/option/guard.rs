//! Mistakes in `guard`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", guard = lock, guard = lock)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", guard, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", guard = 1)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

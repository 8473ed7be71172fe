//! Mistakes in `outlives`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", outlives = true, outlives = true)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", outlives, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", outlives = "true")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! Mistakes in `reentrant`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", reentrant = true, reentrant = true)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", reentrant, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", reentrant = 1)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! Mistakes in `fair`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fair = true, fair = true)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", fair, renew = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", fair = "true")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

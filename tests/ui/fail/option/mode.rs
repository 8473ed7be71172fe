//! Mistakes in `mode`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", mode = "read", mode = "read")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", mode, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", mode = "shared")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

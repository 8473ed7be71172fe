//! Mistakes in `on_lost`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_lost = "cancel", on_lost = "cancel")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_lost, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_lost = "stop")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

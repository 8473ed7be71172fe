//! Mistakes in `on_busy`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_busy = "error", on_busy = "error")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_busy, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_busy = skip)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! Mistakes in `crate`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", crate = ::lock_runtime, crate = ::lock_runtime)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", crate, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", crate = "lock_runtime")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

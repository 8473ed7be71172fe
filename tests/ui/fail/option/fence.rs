//! Mistakes in `fence`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fence = token, fence = token)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", fence, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", fence = "token")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

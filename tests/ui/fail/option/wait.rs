//! Mistakes in `wait`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "3s", wait = "3s")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = 3)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = 5 * 1000)]
async fn not_a_duration() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

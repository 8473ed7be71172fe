//! Mistakes in `hold_at_least`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", hold_at_least = "5s", hold_at_least = "5s")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least = "5")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least = 5 * 1000)]
async fn not_a_duration() -> Result<u32, LockError> {
    Ok(1)
}

#[distributed_lock(key = "a", hold_at_least = "25h")]
async fn too_long() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

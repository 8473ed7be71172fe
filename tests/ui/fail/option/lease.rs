//! Mistakes in `lease`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "20s", lease = "20s")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = 10)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "0s")]
async fn zero() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "9ms")]
async fn too_short() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "24h1ms")]
async fn above_24h() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = 5 * 1000)]
async fn not_a_duration() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

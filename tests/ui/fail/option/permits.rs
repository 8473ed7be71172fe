//! Mistakes in `permits`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = 5, permits = 5)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = "5")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = 0)]
async fn zero() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = -1)]
async fn negative() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = 1.5)]
async fn fraction() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = 2_147_483_647)]
async fn too_many() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = 0x1_0000_0000_0000_0000)]
async fn beyond_u64() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = 5_i64)]
async fn wrong_literal() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = limit)]
async fn wrong_type(limit: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", permits = limit)]
async fn reference(limit: &u32) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

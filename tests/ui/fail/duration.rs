//! Texts that are not durations.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "")]
async fn empty() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10")]
async fn without_unit() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "s")]
async fn without_number() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least = "10sec")]
async fn wrong_unit() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "never")]
async fn word() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "3 s")]
async fn space() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "1.5s")]
async fn fraction() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "-1s")]
async fn negative() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least = "99999999999999999999h")]
async fn too_long() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! Mistakes in the list of options.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", banana = 1)]
async fn unknown() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(kye = "a", lease = "10s")]
async fn misspelt() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "10s")]
async fn from_elsewhere() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", = "10s")]
async fn not_a_name() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock("stock:<id>", lease = "10s")]
async fn without_name(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a" lease = "10s")]
async fn without_comma() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_error = |error|)]
async fn half_a_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! Names that do not exist. Beside mistakes in attributes, the compiler would not report
//! them.

use lock_runtime::{LockError, distributed_lock, lock_key};

#[distributed_lock(key = "a")]
async fn generated_client() -> Result<u8, LockError> {
    Ok(__lock_client)
}

#[distributed_lock(key = "a")]
async fn generated_guard() -> Result<u8, LockError> {
    Ok(__lock_guard)
}

#[distributed_lock(key = "a")]
async fn generated_key() -> Result<u8, LockError> {
    Ok(__lock_key)
}

#[distributed_lock(key = "a")]
async fn generated_return() -> Result<u8, LockError> {
    Ok(__lock_return)
}

#[distributed_lock(key = "a", fence = token, guard = hold)]
async fn generated_token() -> Result<u8, LockError> {
    Ok(__lock_token)
}

#[distributed_lock(key = "a")]
async fn guard_without_option() -> Result<u8, LockError> {
    Ok(guard)
}

#[distributed_lock(key = "a", permits = limti)]
async fn variable_in_permits(limit: u32) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10s", wait = "1s", crate = nowhere::lock)]
async fn crate_path() -> Result<(), LockError> {
    Ok(())
}

fn variable_in_lock_key() {
    let id = 1;
    let _ = lock_key!("a:<ids>");
}

fn main() {}

//! Mistakes in `client`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", client = &CLIENT, client = &CLIENT)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", client, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", client = "global")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", client = 1 + 1)]
async fn not_a_client() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

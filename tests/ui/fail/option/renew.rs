//! Mistakes in `renew`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", renew = true, renew = true)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", renew, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", renew = "yes")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

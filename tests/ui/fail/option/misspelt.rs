//! A misspelt option.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(kye = "a", lease = "10s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

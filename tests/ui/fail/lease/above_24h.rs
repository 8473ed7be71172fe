//! A lease of more than a day.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "24h1ms")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `lease` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "20s", lease = "20s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

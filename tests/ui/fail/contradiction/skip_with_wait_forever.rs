//! To skip after waiting forever.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "forever", on_busy = "skip")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `on_busy = "skip"` with a `Result` that has nothing to say it.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_busy = "skip")]
async fn work() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

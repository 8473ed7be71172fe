//! `on_busy` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_busy = "error", on_busy = "error")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

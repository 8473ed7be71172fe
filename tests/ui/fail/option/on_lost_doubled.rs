//! `on_lost` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_lost = "cancel", on_lost = "cancel")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

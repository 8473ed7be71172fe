//! A wrong value of `on_busy`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_busy = skip)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

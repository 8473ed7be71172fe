//! A wrong value of `on_lost`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_lost = "stop")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

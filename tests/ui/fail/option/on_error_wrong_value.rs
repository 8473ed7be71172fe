//! A wrong value of `on_error`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_error = "skip")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `on_error` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_error = handle, on_error = handle)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

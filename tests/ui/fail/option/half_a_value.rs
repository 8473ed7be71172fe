//! A value that is not complete.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_error = |error|)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

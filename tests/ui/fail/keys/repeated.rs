//! An array of one key over and over.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = ["a"; 2])]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

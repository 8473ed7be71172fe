//! An empty placeholder.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<>")]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

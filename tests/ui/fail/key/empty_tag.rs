//! An empty hash tag.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "{}:<id>")]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

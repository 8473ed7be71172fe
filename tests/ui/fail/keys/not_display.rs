//! A value that has no text, in the second key.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = ["a:<id>", "b:<tags>"])]
async fn work(id: u64, tags: Vec<u64>) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

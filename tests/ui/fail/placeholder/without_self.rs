//! `self` in a function that has none.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<self.id>")]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

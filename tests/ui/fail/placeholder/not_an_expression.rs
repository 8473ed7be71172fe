//! Not an expression.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<1 2>")]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

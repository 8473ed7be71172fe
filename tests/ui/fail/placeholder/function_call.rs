//! A function call.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<f(id)>")]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

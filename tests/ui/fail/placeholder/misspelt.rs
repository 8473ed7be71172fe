//! A misspelt parameter.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<prodct_id>")]
async fn work(product_id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A misspelt parameter among others.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<prodct_id>")]
async fn work(tenant: u64, product_id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

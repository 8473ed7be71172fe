//! A parameter that is not there, nor nearly.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<other>")]
async fn work(tenant: u64, product_id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A value without its name.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock("stock:<id>", lease = "10s")]
async fn work(id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

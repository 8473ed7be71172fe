//! Nothing between two placeholders.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "<a><b>")]
async fn work(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

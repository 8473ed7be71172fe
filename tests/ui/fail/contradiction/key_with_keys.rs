//! One key and several.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "account:<from>", keys = ["account:<to>"])]
async fn work(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

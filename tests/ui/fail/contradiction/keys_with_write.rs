//! Several keys, as writers.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = ["account:<from>", "account:<to>"], mode = "write")]
async fn work(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

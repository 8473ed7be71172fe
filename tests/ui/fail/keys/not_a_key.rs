//! A value that is no key.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = ["account:<from>", to])]
async fn work(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

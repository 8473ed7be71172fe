//! A key that takes what the next one looks at.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(keys = [from, "account:<from>"])]
async fn work(from: String) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! `client` is not a client.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", client = 1 + 1)]
async fn work() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

//! `client` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", client = &CLIENT, client = &CLIENT)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

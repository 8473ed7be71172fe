//! More permits than there can be.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = 2_147_483_647)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! More permits than any number has.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = 0x1_0000_0000_0000_0000)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

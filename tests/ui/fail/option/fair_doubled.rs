//! `fair` twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fair = true, fair = true)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

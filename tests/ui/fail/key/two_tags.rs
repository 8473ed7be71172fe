//! Two hash tags.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "{a}:{b}")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

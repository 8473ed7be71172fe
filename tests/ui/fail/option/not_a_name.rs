//! Something that is not even a name.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", = "10s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

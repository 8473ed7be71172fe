//! A key that begins like the helper keys.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "%queue")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

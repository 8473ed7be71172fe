//! A number of another type.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", permits = 5_i64)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

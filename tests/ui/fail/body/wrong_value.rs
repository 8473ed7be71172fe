//! The body gives another type.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work() -> Result<String, LockError> {
    Ok("x")
}

fn main() {}

//! A parameter moved twice.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work(name: String) -> Result<String, LockError> {
    drop(name);
    Ok(name)
}

fn main() {}

//! A parameter changed without `mut`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work(count: u8) -> Result<u8, LockError> {
    count += 1;
    Ok(count)
}

fn main() {}

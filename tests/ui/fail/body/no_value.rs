//! The body gives nothing.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work() -> Result<u8, LockError> {
    let _ = 1;
}

fn main() {}

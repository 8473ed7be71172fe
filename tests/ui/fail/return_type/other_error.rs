//! An error type that no `LockError` goes into.

use lock_runtime::distributed_lock;

struct OtherError;

#[distributed_lock(key = "a")]
async fn work() -> Result<u32, OtherError> {
    Ok(1)
}

fn main() {}

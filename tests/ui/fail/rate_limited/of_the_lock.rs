//! An option of the other attribute.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", lease = "10s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A rate limiter that is waited for without end.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", wait = "forever")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! An option as another rate limiter calls it.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", max_burst = 4)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

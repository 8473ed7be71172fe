//! A rate finer than the limiter counts.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "10000000/s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

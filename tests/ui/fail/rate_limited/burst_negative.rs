//! A burst below zero.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", burst = -1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

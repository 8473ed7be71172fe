//! A rate in words.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "100 per s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

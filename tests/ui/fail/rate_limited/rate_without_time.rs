//! How many, and not in how long.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "100")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

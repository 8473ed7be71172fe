//! No rate.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

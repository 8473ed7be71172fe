//! `key` twice.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(rate = "1/s", key = "a", key = "a")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

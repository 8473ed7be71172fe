//! `key` without a value.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(rate = "1/s", key)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

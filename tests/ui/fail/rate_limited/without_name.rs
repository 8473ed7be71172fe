//! A rate without `rate =`.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", "100/s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

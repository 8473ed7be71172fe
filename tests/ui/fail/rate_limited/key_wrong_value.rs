//! A wrong value of `key`.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(rate = "1/s", key = 1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A wrong value of `rate`.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = 100)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

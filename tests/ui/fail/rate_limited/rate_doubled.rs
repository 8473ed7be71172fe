//! `rate` twice.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", rate = "1/s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

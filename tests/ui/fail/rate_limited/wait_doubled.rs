//! `wait` twice.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", wait = "1s", wait = "1s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A path that leads nowhere.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", wait = "1s", crate = nowhere::lock)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

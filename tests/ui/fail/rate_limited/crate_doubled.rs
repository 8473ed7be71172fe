//! `crate` twice.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", crate = lock_runtime, crate = lock_runtime)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

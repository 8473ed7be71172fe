//! A rate slower than one in 30 days.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/721h")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

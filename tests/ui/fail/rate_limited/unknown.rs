//! An option that is none, nor nearly one.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", banana = 1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

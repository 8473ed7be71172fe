//! `client` without a value.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", client)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

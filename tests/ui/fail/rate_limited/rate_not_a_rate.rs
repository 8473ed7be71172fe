//! `rate` is not a `Rate`.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = limit)]
async fn work(limit: u32) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

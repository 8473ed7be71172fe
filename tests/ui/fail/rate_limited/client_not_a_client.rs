//! `client` is not a client.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", client = 1 + 1)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

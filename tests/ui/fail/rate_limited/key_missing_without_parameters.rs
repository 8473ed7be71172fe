//! No key, and no parameters.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(rate = "1/s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

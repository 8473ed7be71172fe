//! No key, and a parameter to make one of.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(rate = "1/s")]
async fn work(app_id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

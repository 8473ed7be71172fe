//! An expression that is not a key.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = app_id, rate = "1/s")]
async fn work(app_id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

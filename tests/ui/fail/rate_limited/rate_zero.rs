//! A rate that lets nothing pass.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "0/s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

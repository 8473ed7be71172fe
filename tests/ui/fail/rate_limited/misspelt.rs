//! A misspelt option.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rte = "1/s")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A burst that lets nothing pass.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", burst = 0)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A burst that comes back after more than 30 days.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/h", burst = 721)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

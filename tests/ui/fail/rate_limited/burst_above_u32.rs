//! A burst that is no `u32`.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", burst = 4294967296)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

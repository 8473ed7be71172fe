//! A unit as others write it.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "100/min")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A unit that there is not.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "10/day")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

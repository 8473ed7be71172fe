//! The body gives something else.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
async fn work() -> Result<String, LockError> {
    Ok(1)
}

fn main() {}

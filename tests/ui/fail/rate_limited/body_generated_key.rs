//! A name of the expansion is not there.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
async fn work() -> Result<u8, LockError> {
    Ok(__lock_key)
}

fn main() {}

//! A wrong value of `wait`.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", wait = 3)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

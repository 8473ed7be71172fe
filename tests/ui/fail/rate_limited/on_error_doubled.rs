//! `on_error` twice.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", on_error = f, on_error = f)]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

//! A function that is not asynchronous.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {
    let _ = work();
}

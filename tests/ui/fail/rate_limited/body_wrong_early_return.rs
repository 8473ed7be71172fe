//! The body returns something else early.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
async fn work(early: bool) -> Result<u32, LockError> {
    if early {
        return Err("early");
    }
    Ok(1)
}

fn main() {}

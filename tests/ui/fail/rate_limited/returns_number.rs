//! A number can't carry a `LockError`.

use lock_runtime::rate_limited;

#[rate_limited(key = "a", rate = "1/s")]
async fn work() -> u32 {
    1
}

fn main() {}

//! A future by hand that can't carry a `LockError`.

use lock_runtime::rate_limited;
use std::pin::Pin;

#[rate_limited(key = "a", rate = "1/s")]
fn work() -> Pin<Box<dyn Future<Output = Option<u32>>>> {
    Box::pin(async move { Some(1) })
}

fn main() {}

//! Mistakes in the body, and return types that can't carry a `LockError`.

use lock_runtime::{LockError, rate_limited};
use std::pin::Pin;

#[rate_limited(key = "a", rate = "1/s")]
async fn wrong_value() -> Result<String, LockError> {
    Ok(1)
}

#[rate_limited(key = "a", rate = "1/s")]
async fn wrong_early_return(early: bool) -> Result<u32, LockError> {
    if early {
        return Err("early");
    }
    Ok(1)
}

#[rate_limited(key = "a", rate = "1/s")]
async fn returns_number() -> u32 {
    1
}

#[rate_limited(key = "a", rate = "1/s")]
fn returns_boxed_option() -> Pin<Box<dyn Future<Output = Option<u32>>>> {
    Box::pin(async move { Some(1) })
}

fn main() {}

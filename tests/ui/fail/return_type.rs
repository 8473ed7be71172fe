//! Return types that can't carry a `LockError`: one error each, at the return type.

use lock_runtime::{LockError, distributed_lock};

struct OtherError;

#[distributed_lock(key = "a")]
async fn nothing() {}

#[distributed_lock(key = "a")]
async fn number() -> u32 {
    1
}

#[distributed_lock(key = "a")]
async fn option() -> Option<u32> {
    Some(1)
}

#[distributed_lock(key = "a")]
async fn other_error() -> Result<u32, OtherError> {
    Ok(1)
}

#[distributed_lock(key = "a", on_busy = "skip")]
async fn not_skippable() -> Result<u32, LockError> {
    Ok(1)
}

#[distributed_lock(key = "a", on_error = |error| error.to_string())]
async fn wrong_handler() -> u32 {
    1
}

#[distributed_lock(key = "a", on_error = 1 + 1)]
async fn not_a_handler() -> u32 {
    1
}

#[distributed_lock(key = "a", on_error = |_| drop(name))]
async fn handler_takes_what_the_body_takes(name: String) {
    drop(name);
}

#[distributed_lock(key = "a", client = 1 + 1)]
async fn not_a_client() -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}

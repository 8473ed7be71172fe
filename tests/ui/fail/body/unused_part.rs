//! A part of a pattern that nothing uses.
#![deny(unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work((a, b): (u8, u8)) -> Result<u8, LockError> {
    Ok(a)
}

fn main() {}

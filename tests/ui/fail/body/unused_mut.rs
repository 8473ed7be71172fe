//! A `mut` that nothing needs.
#![deny(unused_mut)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work(mut a: u8) -> Result<u8, LockError> {
    Ok(a)
}

fn main() {}

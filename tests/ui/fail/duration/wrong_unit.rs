//! A unit that is none.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", hold_at_least = "10sec")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

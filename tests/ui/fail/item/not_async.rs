//! A function that is not asynchronous.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {
    let _ = work();
}

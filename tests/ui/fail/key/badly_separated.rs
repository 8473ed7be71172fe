//! Between two placeholders something that values can contain.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "x:<a>-<b>")]
async fn work(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

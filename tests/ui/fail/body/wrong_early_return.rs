//! An early return of another type.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn work(early: bool) -> Result<u8, LockError> {
    if early {
        return Err("early");
    }
    Ok(1)
}

fn main() {}

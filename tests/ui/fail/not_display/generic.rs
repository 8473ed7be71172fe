//! A type parameter without `Display`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<opaque>")]
async fn work<T>(opaque: T) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

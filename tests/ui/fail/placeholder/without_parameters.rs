//! A placeholder in a function without parameters.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<id>")]
async fn work() -> Result<(), LockError> {
    Ok(())
}

fn main() {}

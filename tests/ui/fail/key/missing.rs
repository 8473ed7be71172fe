//! No key, and parameters to make one of.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock]
async fn deduct(_first: u8, id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

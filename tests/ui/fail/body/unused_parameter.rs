//! A parameter that nothing uses; the key counts as a use.
#![deny(unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<used_by_key>")]
async fn work(used_by_key: u8, unused: u8) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

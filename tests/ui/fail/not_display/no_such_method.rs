//! A method that is not there.

use lock_runtime::{LockError, distributed_lock};

struct Opaque;

#[distributed_lock(key = "a:<opaque.xyzzy()>")]
async fn work(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

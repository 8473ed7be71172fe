//! A parameter without `Display`.

use lock_runtime::{LockError, distributed_lock};

struct Opaque;

#[distributed_lock(key = "a:<opaque>")]
async fn work(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

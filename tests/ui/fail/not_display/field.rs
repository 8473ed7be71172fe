//! A field without `Display`.

use lock_runtime::{LockError, distributed_lock};

struct Opaque {
    inner: Vec<u8>,
}

#[distributed_lock(key = "a:<opaque.inner>")]
async fn work(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

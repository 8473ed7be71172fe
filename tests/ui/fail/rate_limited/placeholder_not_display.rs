//! A parameter without `Display`.

use lock_runtime::{LockError, rate_limited};

struct Opaque;

#[rate_limited(key = "a:<opaque>", rate = "1/s")]
async fn work(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

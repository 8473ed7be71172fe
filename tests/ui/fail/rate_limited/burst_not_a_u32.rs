//! `burst` is not a `u32`.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s", burst = apps.len())]
async fn work(apps: &[u64]) -> Result<(), LockError> {
    Ok(())
}

fn main() {}

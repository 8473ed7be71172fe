//! The tokens of two keys taken for one.

use lock_runtime::{FencingToken, LockError, distributed_lock};

#[distributed_lock(keys = ["account:<from>", "account:<to>"], fence = token)]
async fn work(from: u64, to: u64) -> Result<FencingToken, LockError> {
    Ok(token)
}

fn main() {}

//! An `Option`.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
async fn work() -> Option<u32> {
    Some(1)
}

fn main() {}

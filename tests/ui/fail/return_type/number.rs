//! A number.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
async fn work() -> u32 {
    1
}

fn main() {}

//! A function that never returns.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
async fn work() -> ! {
    std::future::pending().await
}

fn main() {}

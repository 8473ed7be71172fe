//! `on_busy = "skip"` with something else that has nothing to say it.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a", on_busy = "skip", on_error = |_| 0)]
async fn work() -> u32 {
    1
}

fn main() {}

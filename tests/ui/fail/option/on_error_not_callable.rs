//! `on_error` is not callable.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a", on_error = 1 + 1)]
async fn work() -> u32 {
    1
}

fn main() {}

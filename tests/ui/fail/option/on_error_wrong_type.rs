//! `on_error` gives another type than the function.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a", on_error = |error| error.to_string())]
async fn work() -> u32 {
    1
}

fn main() {}

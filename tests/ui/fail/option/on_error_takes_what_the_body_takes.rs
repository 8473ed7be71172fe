//! `on_error` takes a parameter that the body takes too.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a", on_error = |_| drop(name))]
async fn work(name: String) {
    drop(name);
}

fn main() {}

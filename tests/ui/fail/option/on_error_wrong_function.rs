//! `on_error` is a function that gives another type.

use lock_runtime::{LockError, distributed_lock};

fn handle(_: LockError) -> u64 {
    0
}

#[distributed_lock(key = "a", on_error = handle)]
async fn work() -> u32 {
    1
}

fn main() {}

//! An error type that may be any.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
async fn work<T, E>(value: Result<T, E>) -> Result<T, E> {
    value
}

fn main() {}

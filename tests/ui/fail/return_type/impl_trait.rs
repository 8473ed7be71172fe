//! `impl Trait` that is not a `Result`.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
async fn work() -> impl std::fmt::Display {
    1
}

fn main() {}

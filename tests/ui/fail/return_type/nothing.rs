//! Nothing is returned.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
async fn work() {}

fn main() {}

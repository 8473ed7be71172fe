//! A trait.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
trait Trait {
    fn work();
}

fn main() {}

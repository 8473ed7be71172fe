//! An `impl` block.

use lock_runtime::distributed_lock;

struct Structure;

#[distributed_lock(key = "a")]
impl Structure {
    fn work(&self) {}
}

fn main() {
    Structure.work();
}

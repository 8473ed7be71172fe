//! An `impl` block.

use lock_runtime::rate_limited;

struct Structure;

#[rate_limited(key = "a", rate = "1/s")]
impl Structure {
    fn work(&self) {}
}

fn main() {
    Structure.work();
}

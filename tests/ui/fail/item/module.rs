//! A module.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
mod module {
    pub(crate) fn work() {}
}

fn main() {
    module::work();
}

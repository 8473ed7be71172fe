//! A `const fn`.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
const fn work() -> u8 {
    1
}

fn main() {
    const _: u8 = work();
}

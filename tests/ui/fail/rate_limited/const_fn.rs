//! A `const fn`.

use lock_runtime::rate_limited;

#[rate_limited(key = "a", rate = "1/s")]
const fn work() -> u8 {
    1
}

fn main() {
    const _: u8 = work();
}

//! A constant.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
const CONSTANT: u8 = 1;

fn main() {
    let _ = CONSTANT;
}

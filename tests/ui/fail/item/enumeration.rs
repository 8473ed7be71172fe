//! An enum.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
enum Enumeration {
    One,
}

fn main() {
    let _ = Enumeration::One;
}

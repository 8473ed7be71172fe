//! A struct.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
struct Structure;

fn main() {
    let _ = Structure;
}

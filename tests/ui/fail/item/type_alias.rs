//! A type alias.

use lock_runtime::distributed_lock;

#[distributed_lock(key = "a")]
type Alias = u8;

fn main() {
    let _: Alias = 1;
}

//! A struct.

use lock_runtime::rate_limited;

#[rate_limited(key = "a", rate = "1/s")]
struct Structure;

fn main() {
    let _ = Structure;
}

//! A variable without `Display` in `lock_key!`.

use lock_runtime::lock_key;

struct Opaque;

fn main() {
    let opaque = Opaque;
    let _ = lock_key!("a:<opaque>");
}

//! A variable that is not there.

use lock_runtime::lock_key;

fn main() {
    let id = 1;
    let _ = lock_key!("a:<ids>");
}

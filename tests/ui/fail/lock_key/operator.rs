//! An expression that a placeholder can't be.

use lock_runtime::lock_key;

fn main() {
    let id = 1;
    let _ = lock_key!("a:<id + 1>");
}

//! What can be wrong with `lock_key!`.

use lock_runtime::lock_key;

fn main() {
    let id = 1;
    let _ = lock_key!();
    let _ = lock_key!(id);
    let _ = lock_key!("");
    let _ = lock_key!("<id><id>");
    let _ = lock_key!("a:<ids>");
    let _ = lock_key!("a:<id + 1>");
    let _ = lock_key!("a:<id>", lease = "10s");
}

//! Mistakes in `lock_key!`.

use lock_runtime::lock_key;

fn without_arguments() {
    let id = 1;
    let _ = lock_key!();
}

fn not_a_literal() {
    let id = 1;
    let _ = lock_key!(id);
}

fn empty() {
    let id = 1;
    let _ = lock_key!("");
}

fn not_separated() {
    let id = 1;
    let _ = lock_key!("<id><id>");
}

fn operator() {
    let id = 1;
    let _ = lock_key!("a:<id + 1>");
}

fn option() {
    let id = 1;
    let _ = lock_key!("a:<id>", lease = "10s");
}

fn main() {}

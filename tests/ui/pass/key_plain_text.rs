//! Text that looks like a placeholder of another framework, and names no parameter.

#[path = "../support.rs"]
mod support;

use lock_runtime::{Guard, LockError, distributed_lock, lock_key};

fn key_of(guard: &Guard) -> String {
    guard.key().to_string()
}

#[distributed_lock(key = "{orders}:<id>", guard = lock)]
async fn hash_tag(id: u32) -> Result<String, LockError> {
    Ok(format!("{id} {}", key_of(lock)))
}

#[distributed_lock(key = "{id-1}:#ids:$1:%ids%:50%id:<id>", guard = lock)]
async fn other_words(id: u32) -> Result<String, LockError> {
    Ok(format!("{id} {}", key_of(lock)))
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(hash_tag(1).await.unwrap(), "1 {orders}:1");
        let other = other_words(1).await.unwrap();
        assert_eq!(other, "1 {id-1}:#ids:$1:%ids%:50%id:1");
        // Beside a value, the tag is meant as a tag.
        let id = 1;
        assert_eq!(lock_key!("{orders}:<id>").as_str(), "{orders}:1");
    });
}

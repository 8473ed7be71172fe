//! `&str`, and the characters in it that are escaped.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

#[distributed_lock(key = "text:<text>", guard = lock)]
async fn text(text: &str) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(text("abc").await.unwrap(), LockKey::from("text:abc"));
        assert_eq!(
            text("a:b c").await.unwrap(),
            LockKey::from("text:a%3Ab%20c")
        );
    });
}

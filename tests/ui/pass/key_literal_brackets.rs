//! `<<` and `>>` stand for the characters. Braces mark a tag and are characters too.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock, lock_key};

#[distributed_lock(key = "<<a>>:b>>c<<d", guard = lock)]
async fn only_characters() -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key = "<<<a>>>", guard = lock)]
async fn around_a_placeholder(a: u8) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key = "{<tenant>}:<<a>>:<text[..2]>", guard = lock)]
async fn literal_brackets_and_a_tag(tenant: u8, text: &str) -> Result<LockKey, LockError> {
    let _ = tenant;
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let key = only_characters().await.unwrap();
        assert_eq!(key, LockKey::from("<a>:b>c<d"));
        let key = around_a_placeholder(1).await.unwrap();
        assert_eq!(key, LockKey::from("<1>"));
        let key = literal_brackets_and_a_tag(1, "abc").await.unwrap();
        assert_eq!(key, LockKey::from("{1}:<a>:ab"));
        let (tenant, id) = (1, "x");
        assert_eq!(lock_key!("{<tenant>}:<id>"), LockKey::from("{1}:x"));
    });
}

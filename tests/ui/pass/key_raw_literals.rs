//! A raw string as a template, and a raw identifier in one.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

#[distributed_lock(key = r#"raw:<name.trim_matches('"')>"#, guard = lock)]
async fn raw_literal(name: String) -> Result<LockKey, LockError> {
    drop(name);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "keyword:<r#type>", guard = lock)]
async fn raw_identifier(r#type: u8) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let key = raw_literal("\"n\"".to_owned()).await.unwrap();
        assert_eq!(key, LockKey::from("raw:n"));
        let key = raw_identifier(1).await.unwrap();
        assert_eq!(key, LockKey::from("keyword:1"));
    });
}

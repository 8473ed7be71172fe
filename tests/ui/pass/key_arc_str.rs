//! `Arc<str>`, by value and by reference.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};
use std::sync::Arc;

#[distributed_lock(key = "name:<name>", guard = lock)]
async fn owned(name: Arc<str>) -> Result<LockKey, LockError> {
    drop(name);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "name:<name>", guard = lock)]
async fn borrowed(name: &Arc<str>) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let name: Arc<str> = "s".into();
        assert_eq!(borrowed(&name).await.unwrap(), LockKey::from("name:s"));
        assert_eq!(owned(name).await.unwrap(), LockKey::from("name:s"));
    });
}

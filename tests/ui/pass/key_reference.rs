//! References, also to references, and mutable ones that the body goes on using.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

#[distributed_lock(key = "shared:<a>:<b>", guard = lock)]
async fn shared(a: &u64, b: &&str) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key = "mutable:<count>", guard = lock)]
async fn mutable(count: &mut u64) -> Result<LockKey, LockError> {
    *count += 1;
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(shared(&7, &"b").await.unwrap(), LockKey::from("shared:7:b"));
        let mut count = 7;
        assert_eq!(
            mutable(&mut count).await.unwrap(),
            LockKey::from("mutable:7")
        );
        assert_eq!(count, 8);
    });
}

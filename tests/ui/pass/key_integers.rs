//! Integers of every size and sign.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

#[distributed_lock(key = "<small>:<large>:<huge>:<size>", guard = lock)]
async fn unsigned(small: u8, large: u64, huge: u128, size: usize) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key = "<small>:<large>:<huge>:<size>", guard = lock)]
async fn signed(small: i8, large: i64, huge: i128, size: isize) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let key = unsigned(255, u64::MAX, u128::MAX, 0).await.unwrap();
        let expected = format!("255:{}:{}:0", u64::MAX, u128::MAX);
        assert_eq!(key, LockKey::from(expected));
        let key = signed(-1, i64::MIN, i128::MIN, 0).await.unwrap();
        let expected = format!("-1:{}:{}:0", i64::MIN, i128::MIN);
        assert_eq!(key, LockKey::from(expected));
    });
}

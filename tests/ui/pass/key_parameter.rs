//! A parameter, alone and among others.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

#[distributed_lock(key = "stock:<product_id>", guard = lock)]
async fn one(product_id: u64, amount: u32) -> Result<LockKey, LockError> {
    assert_eq!(u64::from(amount), product_id);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "<a>:<b>:<a>", guard = lock)]
async fn several(a: u64, b: char) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(one(7, 7).await.unwrap(), LockKey::from("stock:7"));
        assert_eq!(several(7, 'b').await.unwrap(), LockKey::from("7:b:7"));
    });
}

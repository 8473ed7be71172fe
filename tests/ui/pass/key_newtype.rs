//! A type of the user's own with `Display`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};
use std::fmt;

struct ProductId(u64);

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", self.0)
    }
}

#[distributed_lock(key = "product:<id>", guard = lock)]
async fn product(id: ProductId) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let key = product(ProductId(7)).await.unwrap();
        assert_eq!(key, LockKey::from("product:P7"));
    });
}

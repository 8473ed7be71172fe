//! `impl Trait` in the return type.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "impl")]
async fn impl_return() -> Result<impl Iterator<Item = u8>, LockError> {
    Ok([1, 2].into_iter())
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(impl_return().await.unwrap().count(), 2);
    });
}

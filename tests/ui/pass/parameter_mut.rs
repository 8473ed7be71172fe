//! `mut` parameters, in the key and not.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<a>")]
async fn mutable(mut a: u32, mut b: u32) -> Result<u32, LockError> {
    a += 1;
    b += 1;
    Ok(a + b)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(mutable(1, 2).await.unwrap(), 5);
    });
}

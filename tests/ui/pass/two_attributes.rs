//! The attribute twice: two locks.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<a>")]
#[distributed_lock(key = "b:<b>")]
async fn two_locks(a: u32, b: u32) -> Result<u32, LockError> {
    Ok(a + b)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(support::assert_send(two_locks(1, 2)).await.unwrap(), 3);
    });
}

//! A function that calls itself through a box.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "recursive:<n>")]
async fn recursive(n: u32) -> Result<u32, LockError> {
    if n == 0 {
        return Ok(0);
    }
    Ok(Box::pin(recursive(n - 1)).await? + 1)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(support::assert_send(recursive(2)).await.unwrap(), 2);
    });
}

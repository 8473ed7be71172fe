//! `fair`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", fair = true)]
async fn in_order() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", fair = false)]
async fn as_by_default() -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        in_order().await.unwrap();
        as_by_default().await.unwrap();
    });
}

//! `wait`: a time, one try, and for ever.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = "3s")]
async fn some_time() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "0s")]
async fn one_try() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "forever")]
async fn forever() -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        some_time().await.unwrap();
        one_try().await.unwrap();
        forever().await.unwrap();
    });
}

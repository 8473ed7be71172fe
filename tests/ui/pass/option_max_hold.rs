//! `max_hold`: of the renewal by default, and of a lease that is renewed.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", max_hold = "5m")]
async fn limited() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10s", renew = true, max_hold = "10s")]
async fn as_long_as_its_lease() -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        limited().await.unwrap();
        as_long_as_its_lease().await.unwrap();
    });
}

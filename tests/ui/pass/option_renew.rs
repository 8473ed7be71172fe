//! `renew`, with a lease and without.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = "10s", renew = true)]
async fn a_lease_that_is_renewed() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", renew = true)]
async fn as_by_default() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", renew = false)]
async fn not_renewed() -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        a_lease_that_is_renewed().await.unwrap();
        as_by_default().await.unwrap();
        not_renewed().await.unwrap();
    });
}

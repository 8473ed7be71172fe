//! `#[cfg]`, above and below the attribute.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[cfg(any())]
#[distributed_lock(key = "never")]
async fn configured_out() -> Nothing {}

#[distributed_lock(key = "never")]
#[cfg(any())]
async fn configured_out() -> Nothing {}

#[distributed_lock(key = "one of two")]
#[cfg(any())]
async fn one_of_two() -> Result<u8, LockError> {
    Ok(1)
}

#[distributed_lock(key = "one of two")]
#[cfg(not(any()))]
async fn one_of_two() -> Result<u8, LockError> {
    Ok(2)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(one_of_two().await.unwrap(), 2);
    });
}

//! Attributes on parameters.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "configured:<a>")]
async fn configured(
    a: u8,
    #[cfg(any())] gone: Gone,
    #[allow(unused_variables)] unused: u8,
) -> Result<u8, LockError> {
    Ok(a)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(configured(1, 2).await.unwrap(), 1);
    });
}

//! `impl Trait` as a parameter.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::fmt::Display;

#[distributed_lock(key = "impl:<a>")]
async fn impl_parameter(a: impl Display, f: impl FnOnce() -> u8) -> Result<u8, LockError> {
    Ok(f())
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(impl_parameter("a", || 3).await.unwrap(), 3);
    });
}

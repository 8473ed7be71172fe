//! Const generics, in types and in the body.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::fmt::Display;

#[distributed_lock(key = "generic:<id>")]
async fn generic<T: Display, const N: usize>(id: T, values: [T; N]) -> Result<usize, LockError> {
    drop(values);
    Ok(N)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(support::assert_send(generic(1, [2, 3])).await.unwrap(), 2);
    });
}

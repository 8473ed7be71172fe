//! A future boxed by hand, with the type written out and by an alias.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::pin::Pin;

type Result<T> = std::result::Result<T, LockError>;
type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[distributed_lock(key = "boxed:<id>")]
fn boxed(id: &str) -> Pin<Box<dyn Future<Output = Result<usize>> + Send + '_>> {
    Box::pin(async move {
        let length = id.len();
        Ok(length)
    })
}

#[distributed_lock(key = "boxed:<id>")]
fn aliased(id: &str) -> BoxFuture<'_, Result<usize>> {
    Box::pin(async move { Ok(id.len()) })
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(support::assert_send(boxed("ab")).await.unwrap(), 2);
        assert_eq!(support::assert_send(aliased("ab")).await.unwrap(), 2);
    });
}

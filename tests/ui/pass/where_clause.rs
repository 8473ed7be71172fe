//! A `where` clause.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::fmt::Display;

#[distributed_lock(key = "where:<a>")]
async fn with_where<A>(a: A) -> Result<A, LockError>
where
    A: Display + Clone,
{
    Ok(a.clone())
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(with_where("a").await.unwrap(), "a");
    });
}

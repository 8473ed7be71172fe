//! Lifetimes, named and left out, in parameters and in the result.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "borrowed:<a>:<b>")]
async fn borrowed<'a>(a: &'a str, b: &str) -> Result<&'a str, LockError> {
    Ok(a.strip_prefix(b).unwrap_or(a))
}

#[distributed_lock(key = "elided:<a>")]
async fn elided(a: &str) -> Result<std::slice::Iter<'_, u8>, LockError> {
    Ok(a.as_bytes().iter())
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(
            support::assert_send(borrowed("ab", "a")).await.unwrap(),
            "b"
        );
        assert_eq!(elided("ab").await.unwrap().count(), 2);
    });
}

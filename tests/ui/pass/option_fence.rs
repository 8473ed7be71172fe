//! `fence`: a token of that name in the body.

#[path = "../support.rs"]
mod support;

use lock_runtime::{FencingToken, LockError, distributed_lock};

#[distributed_lock(key = "a", fence = token)]
async fn fenced() -> Result<FencingToken, LockError> {
    let copy: FencingToken = token;
    Ok(copy)
}

pub(crate) fn main() {
    support::run(async {
        let first = fenced().await.unwrap();
        assert!(fenced().await.unwrap() > first);
    });
}

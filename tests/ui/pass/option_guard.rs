//! `guard`: a `&Guard` of that name in the body.

#[path = "../support.rs"]
mod support;

use lock_runtime::{Guard, LockError, distributed_lock};

#[distributed_lock(key = "a", guard = hold)]
async fn guarded() -> Result<bool, LockError> {
    let guard: &Guard = hold;
    Ok(guard.is_held())
}

pub(crate) fn main() {
    support::run(async {
        assert!(guarded().await.unwrap());
    });
}

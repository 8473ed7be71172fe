//! `on_lost`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_lost = "cancel")]
async fn is_cancelled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_lost = "continue")]
async fn runs_on() -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        is_cancelled().await.unwrap();
        runs_on().await.unwrap();
    });
}

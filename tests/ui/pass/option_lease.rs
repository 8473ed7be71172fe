//! `lease`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::time::Duration;

#[distributed_lock(key = "a", lease = "1m30s", guard = lock)]
async fn leased() -> Result<Duration, LockError> {
    Ok(lock.remaining())
}

#[distributed_lock(key = "a", lease = "10ms")]
async fn shortest() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "24h")]
async fn longest() -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        let remaining = leased().await.unwrap();
        assert!(remaining > Duration::from_secs(60) && remaining <= Duration::from_secs(90));
        // Ten milliseconds can pass before the body has run.
        let _ = shortest().await;
        longest().await.unwrap();
    });
}

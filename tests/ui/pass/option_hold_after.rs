//! `hold_after`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock};

#[distributed_lock(key = "job", hold_at_least = "5s", hold_after = "success")]
async fn job(fails: bool) -> Result<(), LockError> {
    if fails {
        return Err(LockError::Shutdown);
    }
    Ok(())
}

#[distributed_lock(key = "other", hold_at_least = "5s", hold_after = "always")]
async fn other() -> Result<(), LockError> {
    Err(LockError::Shutdown)
}

pub(crate) fn main() {
    support::run(async {
        let client = LockClient::in_memory();
        assert!(client.scope(job(true)).await.is_err());
        client.scope(job(false)).await.unwrap();
        assert!(client.lock("job").try_acquire().await.unwrap().is_none());
        assert!(client.scope(other()).await.is_err());
        assert!(client.lock("other").try_acquire().await.unwrap().is_none());
    });
}

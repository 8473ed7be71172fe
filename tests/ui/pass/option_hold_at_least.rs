//! `hold_at_least`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock};

#[distributed_lock(key = "job", hold_at_least = "5s")]
async fn job() -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        let client = LockClient::in_memory();
        client.scope(job()).await.unwrap();
        assert!(client.lock("job").try_acquire().await.unwrap().is_none());
    });
}

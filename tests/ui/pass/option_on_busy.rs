//! `on_busy`: an error or a skip, with every return type that can express it.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "job", wait = "0s", on_busy = "error")]
async fn error() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "job", wait = "0s", on_busy = "skip", on_error = |error| panic!("{error}"))]
async fn skip_unit() {
    tokio::task::yield_now().await;
}

#[distributed_lock(key = "job", wait = "0s", on_busy = "skip", on_error = |_| None)]
async fn skip_option() -> Option<u8> {
    Some(1)
}

#[distributed_lock(key = "job", wait = "0s", on_busy = "skip")]
async fn skip_result() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "job", wait = "0s", on_busy = "skip", on_lost = "cancel")]
async fn skip_result_option() -> Result<Option<u8>> {
    Ok(Some(1))
}

pub(crate) fn main() {
    support::run(async {
        error().await.unwrap();
        skip_unit().await;
        assert_eq!(skip_option().await, Some(1));
        skip_result().await.unwrap();
        assert_eq!(skip_result_option().await.unwrap(), Some(1));

        let client = LockClient::in_memory();
        let busy = client.lock("job").acquire().await.unwrap();
        let skipped = client.scope(async {
            assert!(matches!(error().await, Err(LockError::Busy { .. })));
            skip_unit().await;
            assert_eq!(skip_option().await, None);
            skip_result().await.unwrap();
            assert_eq!(skip_result_option().await.unwrap(), None);
        });
        skipped.await;
        busy.release().await.unwrap();
    });
}

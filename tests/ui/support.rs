//! Runs an example on a client of its own.

use lock_runtime::LockClient;

#[allow(clippy::unwrap_used, reason = "a failing example panics")]
pub(crate) fn run<F: Future>(body: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = LockClient::in_memory();
        client.scope(body).await
    })
}

//! What the files of `pass` have in common.
#![allow(dead_code, reason = "not all of them use all of it")]

use lock_runtime::LockClient;

/// Runs an example on a client and a current-thread runtime of its own.
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

pub(crate) fn assert_send<T: Send>(value: T) -> T {
    value
}

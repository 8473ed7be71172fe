//! SQLite: what happens when processes die, the disk is full, the machine starts again, or the file
//! is not what it should be.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod bad_input;
mod boots;
mod disk;
mod drift;
mod files;
mod folder;
mod growth;
mod live_files;
mod processes;
mod transactions;

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError};
use lock_testkit::{ChildProcess, eventually};

/// Far less than any lease here, and more than a slow machine needs.
const AT_ONCE: Duration = Duration::from_secs(5);

async fn client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url);
    let builder = builder.command_timeout(Duration::from_secs(3));
    let builder = builder.connect_timeout(Duration::from_secs(10));
    builder.connect().await.unwrap()
}

/// A worker process that is connected.
async fn worker(url: &str) -> ChildProcess {
    let mut worker = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    worker.send(&format!("connect {url} patient"));
    worker.wait_for("connected").await;
    worker
}

async fn until_waiting(client: &LockClient, key: &str, places: usize) {
    eventually("all of them wait", async || {
        client.inspect(key).await.unwrap().waiting == places
    })
    .await;
}

/// Takes the lock and gives it back, and says how long that took.
async fn take(client: &LockClient, key: &str) -> Duration {
    let started = Instant::now();
    let request = client.lock(key).wait(Duration::from_secs(60));
    request.run(async {}).await.unwrap();
    started.elapsed()
}

async fn is_free(client: &LockClient, key: &str) -> bool {
    client.inspect(key).await.unwrap().holder.is_none()
}

/// The text of a `Config`.
fn config(result: Result<LockClient, LockError>) -> String {
    match result {
        Err(error @ LockError::Config { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

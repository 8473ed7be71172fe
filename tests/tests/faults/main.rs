//! What happens when processes, servers and networks fail.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod addresses;
mod bulk;
mod connection;
mod copies;
mod credentials;
mod denied;
mod evil;
mod fairness;
mod foreign;
mod forged;
mod latch;
mod layout_rights;
mod long_waits;
mod network;
mod older_protocols;
mod processes;
mod quiet;
mod rates;
mod rights;
mod runtimes;
mod rw_lock;
mod secrets;
mod semaphore;
mod server;
mod several;
mod silence;
mod tls;
mod tls_mix_ups;
mod tls_settings;
mod urls;
mod views;

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{ChildProcess, eventually};

/// The command timeout of every client here.
const COMMAND_TIMEOUT: Duration = Duration::from_millis(500);
/// What a slow machine may take on top of a promised time.
const SLACK: Duration = Duration::from_millis(900);

async fn client(url: &str) -> LockClient {
    LockClient::builder().url(url).connect().await.unwrap()
}

/// A client with patience for a busy machine, on whose disk a server that writes each change may
/// wait for a second.
async fn patient_client(url: &str) -> LockClient {
    let builder = LockClient::builder()
        .url(url)
        .command_timeout(10 * COMMAND_TIMEOUT);
    builder.connect_timeout(10 * SLACK).connect().await.unwrap()
}

/// A client whose requests wait for a server that is away. On a busy machine it may be back only
/// when the default time of silence is over.
async fn enduring_client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url);
    let builder = builder.unavailable_after(Duration::from_secs(30));
    builder.connect().await.unwrap()
}

/// A worker process that is connected.
async fn worker(url: &str) -> ChildProcess {
    let mut worker = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    worker.send(&format!("connect {url}"));
    worker.wait_for("connected").await;
    worker
}

/// The kind of an `Unavailable`.
fn unavailable<T: std::fmt::Debug>(result: Result<T, LockError>) -> StoreErrorKind {
    match result {
        Err(LockError::Unavailable { source, .. }) => source.kind(),
        other => panic!("{other:?}"),
    }
}

/// The result and how long it took.
async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    (future.await, started.elapsed())
}

async fn until_waiting(client: &LockClient, key: &str, places: usize) {
    eventually("all of them wait", async || {
        client.inspect(key).await.unwrap().waiting == places
    })
    .await;
}

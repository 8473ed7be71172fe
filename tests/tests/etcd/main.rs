//! etcd: what happens when members are killed, stand still or are cut off, when leases are revoked,
//! history is compacted and space is used up, and when what is there is not what it should be.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod bad_input;
mod cluster;
mod cost;
mod leases;
mod members;
mod users;

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{ChildProcess, EtcdCluster};

/// More than a slow machine needs.
const LONG: Duration = Duration::from_secs(60);

async fn client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url).wait(LONG);
    let builder = builder.command_timeout(Duration::from_secs(2));
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

/// The names of the requests for a key of the namespace `lock`.
async fn requests(servers: &EtcdCluster, key: &str) -> Vec<String> {
    let below = format!("{}/lock/{key}/", servers.prefix());
    let locks = servers.locks().await.into_iter().map(|(key, _)| key);
    locks.filter(|key| key.starts_with(&below)).collect()
}

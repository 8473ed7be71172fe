//! ZooKeeper: what happens when servers are killed or stand still, when a client is cut off or
//! stands still, and when what is there is not what it should be.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod bad_input;
mod cost;
mod curator;
mod members;
mod sessions;
mod tls;

use std::path::Path;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_testkit::{ChildProcess, ZooKeeperEnsemble, java_classpath};

/// More than a slow machine needs.
const LONG: Duration = Duration::from_secs(60);

fn builder(url: &str) -> LockClientBuilder {
    let builder = LockClient::builder().url(url).wait(LONG);
    let builder = builder.command_timeout(Duration::from_secs(2));
    builder.connect_timeout(Duration::from_secs(10))
}

async fn client(url: &str) -> LockClient {
    builder(url).connect().await.unwrap()
}

/// A worker process that is connected.
async fn worker(url: &str) -> ChildProcess {
    let mut worker = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    worker.send(&format!("connect {url} patient"));
    worker.wait_for("connected").await;
    worker
}

/// The number of children at a key of the namespace `lock`.
async fn children(servers: &ZooKeeperEnsemble, key: &str) -> usize {
    let path = format!("{}/lock/{key}", servers.chroot());
    let mut session = servers.session().await;
    let children = session.children(&path).await.len();
    session.close().await;
    children
}

/// The class path of a fixture. `None` where neither its jars nor Maven and a compiler are.
fn classpath(fixture: &str) -> Option<String> {
    let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    java_classpath(target, &fixtures.join(fixture), None)
}

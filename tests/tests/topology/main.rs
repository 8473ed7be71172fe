//! More than one Redis: a master under sentinels, and what happens to locks when another takes its
//! place.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod cluster;
mod cluster_faults;
mod cluster_maps;
mod diagnosis;
mod layouts;
mod load;
mod quorum;
mod quorum_faults;
mod quorum_refuses;
mod replicas;
mod self_descriptions;
mod sentinel;
mod sentinel_names;
mod sentinel_urls;
mod silent_addresses;

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::eventually;

/// What a slow machine may take on top of a promised time.
const SLACK: Duration = Duration::from_millis(900);

async fn client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url);
    // A busy machine takes its time.
    builder.connect_timeout(10 * SLACK).connect().await.unwrap()
}

/// A client with patience for a busy machine, for tests that do not measure how soon something is
/// reported.
async fn patient_client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url).command_timeout(SLACK * 2);
    builder.connect_timeout(10 * SLACK).connect().await.unwrap()
}

/// The kind of an `Unavailable`.
fn unavailable<T: std::fmt::Debug>(result: Result<T, LockError>) -> StoreErrorKind {
    match result {
        Err(LockError::Unavailable { source, .. }) => source.kind(),
        other => panic!("{other:?}"),
    }
}

/// The text of a `Config`.
fn config<T: std::fmt::Debug>(result: Result<T, LockError>) -> String {
    match result {
        Err(error @ LockError::Config { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn until_waiting(client: &LockClient, key: &str, places: usize) {
    eventually("all of them wait", async || {
        client
            .inspect(key)
            .await
            .is_ok_and(|found| found.waiting == places)
    })
    .await;
}

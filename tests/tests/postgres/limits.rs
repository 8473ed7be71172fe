//! What a server runs out of.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{PostgresServer, eventually};
use tokio::task::JoinSet;

use crate::client;

/// A commit that waits for a standby goes on when its client has left, and keeps its session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_stand_still_take_twice_the_connections_at_most() {
    let primary = PostgresServer::start().await;
    let standby = primary.standby(true).await;
    let url = format!("{}?connections=3", primary.app_url());
    let client = LockClient::builder().url(url).connect().await.unwrap();
    let guard = client.lock("before").acquire().await.unwrap();
    guard.release().await.unwrap();
    standby.pause();
    let mut requests = JoinSet::new();
    for number in 0..12 {
        let client = client.clone();
        requests.spawn(async move {
            for again in 0..6 {
                let lock = client.lock(format!("{number}:{again}"));
                let refused = lock.wait(Duration::ZERO).acquire().await;
                assert!(
                    matches!(refused, Err(LockError::Unavailable { .. })),
                    "{refused:?}"
                );
            }
        });
    }
    requests.join_all().await;
    // And the one that listens.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
    assert!(primary.number(sessions).await <= 2 * 3 + 1);
    standby.resume();
    eventually("it is used again", async || {
        let lock = client.lock("after").wait(Duration::ZERO);
        lock.run(async {}).await.is_ok()
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_requests_are_told_so_and_all_goes_on_when_there_is_space() {
    let Some(disk) = lock_testkit::SmallDisk::mounted(160 << 20) else {
        return;
    };
    let server = PostgresServer::within(disk.path()).await;
    let client = client(&server.app_url()).await;
    let lock = client.lock("held").lease(Duration::from_secs(600));
    let held = lock.renew(false).acquire().await.unwrap();
    disk.fill();
    let (_guards, error) = disk.until_refused(&client, 100_000).await;
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    let said = error.to_string();
    // Where it could not write to its log, it has crashed.
    assert!(said.contains("is full") || server.has_ended(), "{said}");
    disk.free();
    if server.has_ended() {
        server.restart().await;
    }
    eventually("it takes locks again", async || {
        client.lock("again").run(async {}).await.is_ok()
    })
    .await;
    assert!(client.lock("held").try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    assert!(client.lock("held").try_acquire().await.unwrap().is_some());
}

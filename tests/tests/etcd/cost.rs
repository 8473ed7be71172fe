//! What a lock costs: the revisions that it makes, and who is woken.

use std::time::Duration;

use lock_testkit::{EtcdCluster, eventually};
use serde_json::json;

use crate::{client, requests};

/// The number of changes so far.
async fn revision(servers: &EtcdCluster) -> u64 {
    let gateway = servers.gateway().await;
    let status = gateway.ask("maintenance/status", &json!({})).await.unwrap();
    let put = &status["header"]["revision"];
    put.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_free_lock_is_one_change_and_its_release_another() {
    let servers = EtcdCluster::one().await;
    let client = client(&servers.url("")).await;
    client.lock("k").run(async {}).await.unwrap();
    let before = revision(&servers).await;
    for _ in 0..10 {
        client.lock("k").run(async {}).await.unwrap();
    }
    assert_eq!(revision(&servers).await - before, 20);
    // Idle, it keeps its lease alive, which is no change.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(revision(&servers).await - before, 20);
}

#[tokio::test]
async fn a_try_at_a_taken_lock_changes_nothing() {
    let servers = EtcdCluster::one().await;
    let (a, b) = (
        client(&servers.url("")).await,
        client(&servers.url("")).await,
    );
    let guard = a.lock("k").acquire().await.unwrap();
    let before = revision(&servers).await;
    for _ in 0..10 {
        assert!(b.lock("k").try_acquire().await.unwrap().is_none());
    }
    assert_eq!(revision(&servers).await, before);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn who_waits_hears_of_a_release_within_milliseconds() {
    let servers = EtcdCluster::one().await;
    let (a, b) = (
        client(&servers.url("")).await,
        client(&servers.url("")).await,
    );
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let guard = a.lock("k").acquire().await.unwrap();
        let waiter = tokio::spawn(b.lock("k").acquire());
        eventually("it waits", async || {
            requests(&servers, "k").await.len() == 2
        })
        .await;
        let began = std::time::Instant::now();
        guard.release().await.unwrap();
        let next = waiter.await.unwrap().unwrap();
        fastest = fastest.min(began.elapsed());
        next.release().await.unwrap();
    }
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

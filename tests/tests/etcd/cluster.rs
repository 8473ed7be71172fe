//! What is done to a cluster while clients use it: compaction, a full quota, a restored snapshot.

use std::path::Path;
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{EtcdCluster, EtcdOptions, eventually};
use serde_json::json;

use crate::client;

#[tokio::test]
async fn a_compaction_takes_no_news_from_those_who_wait() {
    let servers = EtcdCluster::one().await;
    let (a, b) = (
        client(&servers.url("")).await,
        client(&servers.url("")).await,
    );
    let gateway = servers.gateway().await;
    for round in 0..5 {
        let guard = a.lock("k").acquire().await.unwrap();
        let waiter = tokio::spawn(b.lock("k").acquire());
        eventually("it waits", async || {
            a.inspect("k").await.is_ok_and(|found| found.waiting == 1)
        })
        .await;
        let put = gateway.put("t0/other", "x").await.unwrap();
        let revision = put["header"]["revision"].as_str().unwrap();
        let compact = json!({ "revision": revision, "physical": true });
        gateway.ask("kv/compaction", &compact).await.unwrap();
        guard.release().await.unwrap();
        let next = tokio::time::timeout(Duration::from_millis(900), waiter).await;
        let next = next.unwrap_or_else(|_| panic!("round {round}: it is told"));
        next.unwrap().unwrap().release().await.unwrap();
    }
}

async fn with_a_small_quota() -> EtcdCluster {
    let quota = ["--quota-backend-bytes", "4194304"];
    let options = EtcdOptions {
        arguments: quota.map(str::to_owned).to_vec(),
        ..EtcdOptions::default()
    };
    EtcdCluster::of(1, options).await
}

#[tokio::test]
async fn a_quota_near_its_limit_is_told_while_locks_are_still_granted() {
    let servers = with_a_small_quota().await;
    let client = client(&servers.url("")).await;
    let is_told = async |text: &str| {
        let health = client.health().await.unwrap();
        let mut findings = health.servers[0].findings.iter().map(ToString::to_string);
        findings.any(|finding| finding.contains(text))
    };
    assert!(!is_told("of its quota are used").await);
    let gateway = servers.gateway().await;
    let filling = "x".repeat(16 << 10);
    while !is_told("of its quota are used").await {
        gateway.put("t0/much", &filling).await.unwrap();
        // Writes what was put to disk, by which the quota counts, and which comes later otherwise.
        gateway.ask("maintenance/hash", &json!({})).await.unwrap();
    }
    assert!(!is_told("NOSPACE").await);
    client.lock("k").run(async {}).await.unwrap();
}

#[tokio::test]
async fn a_full_quota_is_told_by_its_name_and_all_goes_on_when_there_is_room() {
    let servers = with_a_small_quota().await;
    let client = client(&servers.url("")).await;
    let guard = client.lock("held").acquire().await.unwrap();
    let gateway = servers.gateway().await;
    let much = "x".repeat(500_000);
    let mut last = String::new();
    eventually("the alarm is there", async || {
        // A slow disk refuses, too.
        while let Ok(put) = gateway.put("t0/much", &much).await {
            last = put["header"]["revision"].as_str().unwrap().to_owned();
        }
        let alarms = gateway.ask("maintenance/alarm", &json!({})).await;
        alarms.is_ok_and(|alarms| alarms["alarms"].is_array())
    })
    .await;
    let refused = client
        .lock("k")
        .wait(Duration::from_secs(1))
        .acquire()
        .await;
    let error = refused.map(drop).unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("space exceeded") && text.contains("defrag"),
        "{text}"
    );
    let health = client.health().await.unwrap();
    let findings = health.servers[0].findings.iter().map(ToString::to_string);
    let findings: Vec<String> = findings.collect();
    let has = |text: &str| findings.iter().any(|finding| finding.contains(text));
    assert!(
        has("NOSPACE") && has("of its quota are used"),
        "{findings:?}"
    );
    // Renewals and releases need no room.
    assert!(guard.is_held());
    guard.release().await.unwrap();
    let compact = json!({ "revision": last, "physical": true });
    gateway.ask("kv/compaction", &compact).await.unwrap();
    gateway
        .ask("maintenance/defragment", &json!({}))
        .await
        .unwrap();
    // As `etcdctl alarm disarm` does.
    let alarms = gateway.ask("maintenance/alarm", &json!({})).await.unwrap();
    let member = &alarms["alarms"][0]["memberID"];
    let disarm = json!({ "action": "DEACTIVATE", "memberID": member, "alarm": "NOSPACE" });
    gateway.ask("maintenance/alarm", &disarm).await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
}

/// Puts the last revision of a member that is down at another number: there it stands in its file
/// as the key of what was written then.
fn move_revision(data: &Path, from: u64, to: u64) {
    let key = |revision: u64| [&revision.to_be_bytes()[..], b"_", &[0; 8]].concat();
    let (file, from, to) = (data.join("member/snap/db"), key(from), key(to));
    let mut bytes = std::fs::read(&file).unwrap();
    let starts = bytes.windows(from.len()).enumerate();
    let found = starts.filter(|(_, window)| *window == from);
    let found: Vec<usize> = found.map(|(at, _)| at).collect();
    assert!(!found.is_empty(), "{file:?} has no such revision");
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(&to);
    }
    std::fs::write(&file, bytes).unwrap();
}

#[tokio::test]
async fn health_tells_of_a_cluster_that_is_never_compacted() {
    let servers = EtcdCluster::one().await;
    let put = servers.gateway().await.put("t0/other", "x").await.unwrap();
    let revision = put["header"]["revision"].as_str().unwrap();
    servers.stop_member(0).await;
    move_revision(&servers.data(0), revision.parse().unwrap(), 100_001);
    servers.restart_member(0).await;
    let client = client(&servers.url("")).await;
    let is_told = async || {
        let health = client.health().await.unwrap();
        let findings = health.servers[0].findings.iter().map(ToString::to_string);
        let told = findings.filter(|it| it.contains("--auto-compaction-retention"));
        told.count() > 0
    };
    assert!(is_told().await);
    let compact = json!({ "revision": "100001", "physical": true });
    let gateway = servers.gateway().await;
    gateway.ask("kv/compaction", &compact).await.unwrap();
    assert!(!is_told().await);
}

#[tokio::test]
async fn a_base_that_another_client_raises_counts_at_once() {
    let servers = EtcdCluster::one().await;
    let (a, b) = (
        client(&servers.url("")).await,
        client(&servers.url("")).await,
    );
    let next = async |client: &LockClient| {
        let guard = client.lock("k").fenced().acquire().await.unwrap();
        let token = u64::from(guard.fencing_token().unwrap());
        guard.release().await.unwrap();
        token
    };
    let semaphore = a.semaphore("part", 3);
    let part = async || {
        let permit = semaphore.permit().fenced().acquire().await.unwrap();
        let token = u64::from(permit.fencing_token().unwrap());
        permit.release().await.unwrap();
        token
    };
    let mut last = next(&a).await.max(part().await);
    let gateway = servers.gateway().await;
    let put = gateway.put("t0/other", "x").await.unwrap();
    let cluster = put["header"]["cluster_id"].as_str().unwrap();
    let base = format!("{}/lock/%/base", servers.prefix());
    for raised in 1..4 {
        // As a client that has seen a higher revision.
        let first = last + raised * 1_000_000_000;
        gateway
            .put(&base, &format!("{first} {cluster} {raised}"))
            .await
            .unwrap();
        for client in [&b, &a] {
            let token = next(client).await;
            assert!(token > last.max(first), "{token} after {last} and {first}");
            last = token;
        }
        let token = part().await;
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    // One who waits is handed the lock with such a token.
    let held = b.lock("k").acquire().await.unwrap();
    let waiter = tokio::spawn(a.lock("k").fenced().acquire());
    eventually("it waits", async || {
        b.inspect("k").await.is_ok_and(|found| found.waiting == 1)
    })
    .await;
    let first = last + 1_000_000_000;
    gateway
        .put(&base, &format!("{first} {cluster} 9"))
        .await
        .unwrap();
    held.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(u64::from(guard.fencing_token().unwrap()) > first);
    guard.release().await.unwrap();
}

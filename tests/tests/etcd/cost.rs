//! What a lock costs: the revisions that it makes, and who is woken.

use std::time::Duration;

use lock_testkit::{EtcdCluster, eventually, fastest_hand_over};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client;

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
    let fastest = fastest_hand_over(&a, &b).await;
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

/// The messages of this method's clients so far.
async fn messages(servers: &EtcdCluster, method: &str) -> u64 {
    let address = ("127.0.0.1", servers.ports()[0]);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let question = b"GET /metrics HTTP/1.0\r\n\r\n";
    stream.write_all(question).await.unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).await.unwrap();
    let of = format!("grpc_server_msg_received_total{{grpc_method=\"{method}\"");
    let line = metrics.lines().find(|line| line.starts_with(&of));
    let count = line.and_then(|line| line.rsplit(' ').next());
    count.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn an_idle_client_keeps_its_session_alive_and_asks_nothing_else() {
    let servers = EtcdCluster::one().await;
    let _idle = client(&servers.url("?session=2s")).await;
    let beats = async |more: u64| {
        let before = messages(&servers, "LeaseKeepAlive").await;
        eventually("it is kept alive", async || {
            messages(&servers, "LeaseKeepAlive").await >= before + more
        })
        .await;
    };
    // With the first, it has said that it listens.
    beats(1).await;
    let others = async || {
        let mut counts = Vec::new();
        for method in ["Range", "Put", "Txn", "DeleteRange", "Watch", "LeaseGrant"] {
            counts.push((method, messages(&servers, method).await));
        }
        counts
    };
    let before = others().await;
    beats(5).await;
    assert_eq!(others().await, before);
}

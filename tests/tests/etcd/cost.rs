//! What a lock costs: the revisions that it makes, and who is woken.

use std::time::{Duration, Instant};

use lock_testkit::{EtcdCluster, eventually, fastest_hand_over};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client;

/// The number of changes so far.
pub(crate) async fn revision(servers: &EtcdCluster) -> u64 {
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
async fn a_try_is_one_transaction_whether_the_lock_is_free_or_not() {
    let servers = EtcdCluster::one().await;
    let (a, b) = (
        client(&servers.url("")).await,
        client(&servers.url("")).await,
    );
    // From now on, the lease for such holds is there.
    a.lock("other").run(async {}).await.unwrap();
    let before = questions(&servers, 0).await;
    let guard = a.lock("k").try_acquire().await.unwrap().unwrap();
    assert_eq!(questions(&servers, 0).await, before + 1);
    for refused in 2..7 {
        assert!(b.lock("k").try_acquire().await.unwrap().is_none());
        assert_eq!(questions(&servers, 0).await, before + refused);
    }
    guard.release().await.unwrap();
}

/// Each client is at a member of its own, which counts what that client asks.
#[tokio::test]
async fn a_release_wakes_the_next_one_only() {
    const ROUNDS: u64 = 10;
    let servers = EtcdCluster::three().await;
    let ports = servers.ports();
    let [a, b, c] = [0, 1, 2].map(|member| servers.url_at(&ports[member..=member], ""));
    let (a, b, c) = (client(&a).await, client(&b).await, client(&c).await);
    let until_waiting = async |number: usize| {
        eventually("they wait", async || {
            let found = a.inspect("k").await;
            found.is_ok_and(|found| found.waiting == number)
        })
        .await;
    };
    let (mut asked, mut took) = (0, Duration::ZERO);
    for _ in 0..ROUNDS {
        let first = a.lock("k").acquire().await.unwrap();
        let second = tokio::spawn(b.lock("k").acquire());
        until_waiting(1).await;
        let third = tokio::spawn(c.lock("k").acquire());
        until_waiting(2).await;
        let (before, began) = (questions(&servers, 2).await, Instant::now());
        first.release().await.unwrap();
        let second = second.await.unwrap().unwrap();
        asked += questions(&servers, 2).await - before;
        took += began.elapsed();
        second.release().await.unwrap();
        third.await.unwrap().unwrap().release().await.unwrap();
    }
    // Each second it looks whether a message was lost.
    assert!(asked < ROUNDS / 2 + took.as_secs(), "{asked} in {took:?}");
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

/// What this member's clients have asked about locks so far.
async fn questions(servers: &EtcdCluster, member: usize) -> u64 {
    messages_at(servers, member, "Txn").await + messages_at(servers, member, "Range").await
}

/// The messages of this method's clients so far.
async fn messages(servers: &EtcdCluster, method: &str) -> u64 {
    messages_at(servers, 0, method).await
}

async fn messages_at(servers: &EtcdCluster, member: usize, method: &str) -> u64 {
    let address = ("127.0.0.1", servers.ports()[member]);
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

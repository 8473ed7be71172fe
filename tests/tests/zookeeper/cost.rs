//! What a lock costs: the requests of a free key, of a release, and of waiting.

use std::net::SocketAddr;
use std::time::Duration;

use lock_testkit::{Proxy, ZooKeeperEnsemble, eventually, fastest_hand_over};

use crate::{children, client};

const KINDS: [&str; 7] = [
    "CREATE", "DELETE", "EXISTS", "DATA", "CHILDREN", "MULTI", "OTHER",
];

/// All that was asked but heartbeats.
fn asked(proxy: &Proxy) -> Vec<(&'static str, u64)> {
    let counts = KINDS.map(|kind| (kind, proxy.requests_named(kind)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[tokio::test]
async fn a_free_lock_is_made_and_looked_at_in_one_round_trip_and_its_release_is_another() {
    let servers = ZooKeeperEnsemble::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    let client = client(&servers.url_at(&[proxy.addr().port()], "")).await;
    client.lock("k").run(async {}).await.unwrap();
    let before = asked(&proxy);
    client.lock("k").run(async {}).await.unwrap();
    let after = asked(&proxy);
    let cost = |kind: &str| {
        let of = |all: &[(&str, u64)]| {
            all.iter()
                .find(|(one, _)| *one == kind)
                .map_or(0, |it| it.1)
        };
        of(&after) - of(&before)
    };
    let costs = KINDS.map(cost);
    assert_eq!(costs, [1, 1, 0, 0, 1, 0, 0], "{KINDS:?}");
}

#[tokio::test]
async fn each_waiter_watches_one_child_and_a_release_wakes_one_of_them() {
    let servers = ZooKeeperEnsemble::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    let holder = client(&servers.url("")).await;
    let guard = holder.lock("k").acquire().await.unwrap();
    let first = client(&servers.url("")).await;
    let first = tokio::spawn(first.lock("k").acquire());
    eventually("the first waits", async || {
        children(&servers, "k").await == 2
    })
    .await;
    // The second one is heard through the proxy.
    let second = client(&servers.url_at(&[proxy.addr().port()], "")).await;
    let waiter = tokio::spawn(second.lock("k").acquire());
    eventually("the second waits", async || {
        children(&servers, "k").await == 3
    })
    .await;
    eventually("it watches", async || proxy.requests_named("DATA") == 1).await;
    guard.release().await.unwrap();
    let first = first.await.unwrap().unwrap();
    // It asks each second, and the release of the holder is none of its business.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(proxy.requests_named("DATA"), 1);
    assert!(!waiter.is_finished());
    first.release().await.unwrap();
    drop(waiter.await.unwrap().unwrap());
}

#[tokio::test]
async fn a_heartbeat_makes_servers_write_only_while_its_client_holds_or_waits() {
    let servers = ZooKeeperEnsemble::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    let client = client(&servers.url_at(&[proxy.addr().port()], "?session=8s&tick=500ms")).await;
    let more = async |kind: &str| {
        let before = proxy.requests_named(kind);
        eventually("more are sent", async || {
            proxy.requests_named(kind) >= before + 5
        })
        .await;
    };
    more("SYNC").await;
    // The one that each connection begins with.
    assert_eq!(proxy.requests_named("BEAT"), 1);
    let guard = client.lock("k").acquire().await.unwrap();
    let before = proxy.requests_named("SYNC");
    more("BEAT").await;
    assert_eq!(proxy.requests_named("SYNC"), before);
    guard.release().await.unwrap();
    let before = proxy.requests_named("BEAT");
    more("SYNC").await;
    assert!(proxy.requests_named("BEAT") <= before + 1);
}

/// A leader that was replaced may answer a `sync` by itself.
#[tokio::test]
async fn an_undo_lets_a_majority_write_before_it_looks() {
    let servers = ZooKeeperEnsemble::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    let _held = client(&servers.url(""))
        .await
        .lock("k")
        .acquire()
        .await
        .unwrap();
    let url = servers.url_at(&[proxy.addr().port()], "?session=60s");
    let waiter = tokio::spawn(client(&url).await.lock("k").acquire());
    eventually("it waits", async || children(&servers, "k").await == 2).await;
    // The next heartbeat is two seconds away.
    let before = proxy.requests_named("BEAT");
    waiter.abort();
    eventually("it is undone", async || children(&servers, "k").await == 1).await;
    assert!(proxy.requests_named("BEAT") > before);
}

#[tokio::test]
async fn who_waits_hears_of_a_release_within_milliseconds() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("");
    let (a, b) = (client(&url).await, client(&url).await);
    let fastest = fastest_hand_over(&a, &b).await;
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

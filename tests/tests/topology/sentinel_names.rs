//! What sentinels call the master: one server has several names, and one that is another from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::LockClient;
use lock_runtime::observe::{Event, What};
use lock_testkit::{Proxy, RedisServer, SentinelGroup, eventually_within};

use crate::{SLACK, client};

/// From now on this sentinel calls the master `localhost`.
async fn name_by_name(sentinel: &RedisServer, port: u16) {
    for option in ["resolve-hostnames", "announce-hostnames"] {
        sentinel
            .command(&["SENTINEL", "CONFIG", "SET", option, "yes"])
            .await;
    }
    sentinel.command(&["SENTINEL", "REMOVE", "mymaster"]).await;
    let port = port.to_string();
    sentinel
        .command(&["SENTINEL", "MONITOR", "mymaster", "localhost", &port, "2"])
        .await;
}

/// The group's URL, by way of a proxy before each sentinel.
async fn seen(group: &SentinelGroup) -> (String, Vec<Proxy>) {
    let (mut url, mut proxies) = (group.url(), Vec::new());
    for sentinel in &group.sentinels {
        let proxy = Proxy::start(sentinel.addr()).await;
        url = url.replace(&sentinel.addr().to_string(), &proxy.addr().to_string());
        proxies.push(proxy);
    }
    (url, proxies)
}

/// How often a client has asked this sentinel for the master.
fn questions(sentinel: &Proxy) -> u64 {
    sentinel.requests_named("SENTINEL") / 2
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_name_one_master_by_address_and_by_name_cost_no_connection() {
    let group = SentinelGroup::builder().patient().start().await;
    name_by_name(&group.sentinels[0], group.servers[0].port()).await;
    let (url, sentinels) = seen(&group).await;
    let changes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&changes);
    let builder = LockClient::builder()
        .url(url)
        .observer(move |event: &Event<'_>| {
            let is_one = matches!(
                event.what,
                What::Connected { .. } | What::Disconnected { .. }
            );
            counted.fetch_add(usize::from(is_one), Ordering::SeqCst);
        });
    let client = builder.connect_timeout(10 * SLACK).connect().await.unwrap();
    let limit = Duration::from_secs(60);
    eventually_within(limit, "each sentinel was asked eight times", async || {
        sentinels.iter().all(|sentinel| questions(sentinel) >= 8)
    })
    .await;
    assert_eq!(changes.load(Ordering::SeqCst), 1, "it was connected once");
    drop(client);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_behind_a_translation_of_addresses_is_reached() {
    let group = SentinelGroup::builder().patient().start().await;
    let master = &group.servers[0];
    let proxy = Proxy::start(master.addr()).await;
    let (url, sentinels) = seen(&group).await;
    let url = format!("{url}?map={}>{}", master.addr(), proxy.addr());
    let client = client(&url).await;
    drop(client.lock("k").acquire().await.unwrap());
    assert!(proxy.connections() >= 1);
    // It stays: the sentinels still name the other address.
    let before = proxy.connections();
    let asked = questions(&sentinels[0]);
    let limit = Duration::from_secs(60);
    eventually_within(limit, "the sentinel is asked again", async || {
        questions(&sentinels[0]) >= asked + 3
    })
    .await;
    drop(client.lock("k").acquire().await.unwrap());
    assert_eq!(proxy.connections(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_can_not_be_reached_is_told_to_be_named_by_the_sentinels() {
    let group = SentinelGroup::builder().patient().start().await;
    let address = group.servers[0].addr().to_string();
    group.servers[0].kill();
    let refused = LockClient::builder().url(group.url()).connect().await;
    let said = refused.unwrap_err().to_string();
    let told = "the sentinels name this address";
    assert!(said.contains(&address) && said.contains(told), "{said}");
}

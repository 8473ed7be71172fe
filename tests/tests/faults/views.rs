//! Subscriptions of views: given up after their use, and made again.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{
    Proxy, RedisCluster, RedisQuorum, RedisServer, eventually, eventually_within,
    server_is_at_least,
};
use tokio::task::JoinSet;

use crate::{client, patient_client, until_waiting};

const VIEWS: usize = 20;

/// All channels that anybody listens on.
async fn channels(servers: &[&RedisServer]) -> Vec<String> {
    let mut all = Vec::new();
    for server in servers {
        let kinds = ["CHANNELS", "SHARDCHANNELS"];
        // Slots have channels since Redis 7.
        let known = if server_is_at_least(7) { 2 } else { 1 };
        for kind in &kinds[..known] {
            let found: Vec<String> = server.query(&["PUBSUB", kind]).await;
            all.extend(found);
        }
    }
    all.retain(|channel| channel.contains('%'));
    all
}

/// Waits for a lock that the other has, and gives up.
async fn wait_in_vain(client: &LockClient, other: &LockClient) {
    let held = other.lock("k").acquire().await.unwrap();
    let waits = client.lock("k").wait(Duration::from_millis(50));
    let busy = waits.acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    held.release().await.unwrap();
}

fn view(client: &LockClient, number: usize) -> LockClient {
    client.namespaced(&format!("tenant-{number}"))
}

async fn given_up(url: &str, servers: &[&RedisServer], has_queue: bool) {
    let (one, other) = (client(url).await, client(url).await);
    wait_in_vain(&one, &other).await;
    let before = channels(servers).await;
    for number in 0..VIEWS {
        wait_in_vain(&view(&one, number), &view(&other, number)).await;
    }
    assert!(channels(servers).await.len() > before.len());
    let keeps = view(&other, VIEWS);
    let held = keeps.lock("k").acquire().await.unwrap();
    let of_keeper = |channel: &String| channel.contains(&format!("tenant-{VIEWS}:"));
    eventually("the others are given up", async || {
        let mut now = channels(servers).await;
        now.retain(|channel| !of_keeper(channel));
        now.len() <= before.len()
    })
    .await;
    // Who has a lock there can still be asked for its name.
    assert!(channels(servers).await.iter().any(of_keeper));
    held.release().await.unwrap();
    eventually("this one, too", async || {
        channels(servers).await.len() <= before.len()
    })
    .await;
    // A view that is used again hears of its turn, and goes on to hear as long as it waits.
    let held = view(&other, 1).lock("k").acquire().await.unwrap();
    let waits = view(&one, 1);
    let waiting = tokio::spawn({
        let waits = waits.clone();
        async move { waits.lock("k").wait_forever().acquire().await }
    });
    if has_queue {
        until_waiting(&waits, "k", 1).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let in_use = channels(servers).await;
    assert!(
        in_use.iter().any(|one| one.starts_with("tenant-1:")),
        "{in_use:?}"
    );
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    let health = one.health().await.unwrap();
    assert!(
        health.servers.iter().all(|server| server.reconnects == 0),
        "{health:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_view_listens_on_is_given_up_after_its_use() {
    // A caller's runtime of one thread.
    let alone = tokio::task::spawn_blocking(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let server = RedisServer::start().await;
            given_up(&server.url(), &[&server], true).await;
        });
    });
    let server = RedisServer::start().await;
    let quorum = RedisQuorum::start(3).await;
    let servers: Vec<_> = quorum.servers.iter().collect();
    tokio::join!(
        async { given_up(&server.url(), &[&server], true).await },
        async { given_up(&quorum.url(), &servers, false).await },
    );
    alone.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_listens_for_the_views_in_use_only() {
    let server = RedisServer::start().await;
    listens_for_what_is_in_use(&server.url(), &[&server]).await;
    if !server_is_at_least(7) {
        return;
    }
    let cluster = RedisCluster::start_patient().await;
    let nodes: Vec<_> = cluster.nodes.iter().collect();
    listens_for_what_is_in_use(&cluster.url(), &nodes).await;
}

async fn listens_for_what_is_in_use(url: &str, servers: &[&RedisServer]) {
    let (one, other) = (client(url).await, client(url).await);
    let before = channels(servers).await;
    for number in 0..VIEWS {
        wait_in_vain(&view(&one, number), &view(&other, number)).await;
    }
    let held = view(&one, 1).lock("k").acquire().await.unwrap();
    eventually("what is not used is not listened on", async || {
        for server in servers {
            server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        }
        eventually("they are connected again", async || {
            one.health().await.is_ok() && other.health().await.is_ok()
        })
        .await;
        // One of the view in use, on each server.
        channels(servers).await.len() <= before.len() + servers.len()
    })
    .await;
    held.release().await.unwrap();
}

/// Who begins to listen does not wait until all that is given up has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_used_at_once_while_hundreds_are_given_up() {
    const MANY: usize = 500;
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let (one, other) = (
        patient_client(&proxy.url()).await,
        client(&server.url()).await,
    );
    let (mut taken, mut vain) = (JoinSet::new(), JoinSet::new());
    for number in 0..MANY {
        taken.spawn(view(&other, number).lock("k").acquire());
    }
    let taken: Result<Vec<_>, _> = taken.join_all().await.into_iter().collect();
    let taken = taken.unwrap();
    for number in 0..MANY {
        vain.spawn(view(&one, number).lock("k").wait_forever().acquire());
    }
    // Only the one has waited.
    let heard = async || {
        let all = channels(&[&server]).await;
        all.iter().filter(|one| one.contains("%granted:")).count()
    };
    eventually("all wait", async || heard().await == MANY).await;
    vain.shutdown().await;
    let many = heard().await;
    // A round trip for each would take ten seconds.
    proxy.delay(Duration::from_millis(10));
    eventually("some are given up", async || heard().await < many).await;
    let held = view(&other, MANY).lock("k").acquire().await.unwrap();
    let waits = tokio::spawn(view(&one, MANY).lock("k").wait_forever().acquire());
    eventually_within(Duration::from_secs(3), "it waits", async || {
        let found = view(&other, MANY).inspect("k").await.unwrap();
        found.waiting == 1
    })
    .await;
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    drop(taken);
}

/// A slot goes to another node after the last use of its channel: the server ends that subscription
/// of itself. If the client gave it up in the same moment, it would be refused. No reply may go to
/// another command.
#[tokio::test(flavor = "multi_thread")]
async fn replies_stay_in_order_when_a_server_ends_what_is_being_given_up() {
    if !server_is_at_least(7) {
        return;
    }
    let cluster = RedisCluster::start_patient().await;
    let (from, to) = (&cluster.nodes[0], &cluster.nodes[1]);
    let proxy = Proxy::start(from.addr()).await;
    let url = format!("{}?map={}>{}", cluster.url(), from.addr(), proxy.addr());
    let (one, other) = (patient_client(&url).await, client(&cluster.url()).await);
    let (view, other) = (view(&one, 1), view(&other, 1));
    let mut keys = Vec::new();
    for number in 0.. {
        let key = format!("k{number}");
        let slot = cluster.slot(&format!("tenant-1:{key}")).await;
        if cluster.master_of(slot).await.port() == from.port() {
            keys.push((key, slot));
        }
        if keys.len() == 4 {
            break;
        }
    }
    let [(waited, slot), (own, _), (free, _), (busy, _)] = &keys[..] else {
        panic!("{keys:?}");
    };
    // With this the client goes on to hear others in this view.
    let _own = view.lock(own.as_str()).acquire().await.unwrap();
    let _busy = other.lock(busy.as_str()).acquire().await.unwrap();
    let held = other.lock(waited.as_str()).acquire().await.unwrap();
    let vain = view.lock(waited.as_str()).wait(Duration::from_millis(50));
    assert!(vain.acquire().await.unwrap_err().is_busy());
    until_waiting(&other, waited, 0).await;
    held.release().await.unwrap();
    proxy.freeze();
    // It is given up after two looks, two seconds apart. What is sent then waits for the network.
    tokio::time::sleep(Duration::from_secs(6)).await;
    cluster.move_slot(*slot, to).await;
    let first = tokio::spawn(view.lock(free.as_str()).try_acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = tokio::spawn(view.lock(busy.as_str()).try_acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    proxy.thaw();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert!(!matches!(second, Ok(Some(_))), "two have it; {first:?}");
}

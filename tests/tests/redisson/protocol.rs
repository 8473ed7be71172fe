//! What we write, without Java: names, fields, cost.

use std::time::Duration;

use lock_runtime::{Layout, LockClient};
use lock_testkit::{Proxy, RedisCluster, RedisServer, eventually};

use crate::client;
use crate::servers::Servers;

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_lock_is_a_hash_with_one_field_that_counts_one() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let guard = ours.lock("order").acquire().await.unwrap();
    let fields: Vec<(String, String)> = server.query(&["HGETALL", "order"]).await;
    let [(field, count)] = &fields[..] else {
        panic!("{fields:?}");
    };
    assert_eq!(count, "1");
    let (uuid, thread) = field.split_once(':').unwrap();
    assert_eq!(uuid::Uuid::parse_str(uuid).unwrap().to_string(), uuid);
    assert!(thread.starts_with('0') && thread.bytes().all(|one| one.is_ascii_digit()));
    let rest: i64 = server.query(&["PTTL", "order"]).await;
    assert!((25_000..=30_000).contains(&rest), "{rest}");
    guard.release().await.unwrap();
    assert!(server.keys("*").await.is_empty());
}

#[tokio::test]
async fn a_free_lock_costs_one_round_trip_each_way() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    // The scripts are known from then on.
    ours.lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let mut requests = server.requests().await;
    ours.lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let sent = requests.take().await;
    // Once after it has connected, the client looks at the server's settings.
    let of_locks = sent.iter().map(|one| &*one.command);
    let of_locks: Vec<&str> = of_locks.filter(|one| *one != "info").collect();
    assert_eq!(of_locks, ["evalsha", "evalsha"]);
}

#[tokio::test]
async fn a_namespace_is_a_prefix_as_a_name_mapper_writes_it() {
    let server = RedisServer::start().await;
    let url = format!("{}?layout=redisson&namespace=shop", server.url());
    let ours = LockClient::builder().url(url).connect().await.unwrap();
    let guard = ours.lock("order").fenced().acquire().await.unwrap();
    let view = ours.namespaced("other");
    let other = view.lock("order").acquire().await.unwrap();
    let mut keys = server.keys("*").await;
    keys.sort();
    assert_eq!(
        keys,
        [
            "other:order",
            "redisson_lock_token:{shop:order}",
            "shop:order"
        ]
    );
    drop((guard, other));
}

#[tokio::test]
async fn what_stays_taken_after_its_release_is_held_by_nobody_who_could_renew_it() {
    let server = RedisServer::start().await;
    let (ours, other) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let keep = Duration::from_millis(1500);
    let request = ours.lock("job").hold_at_least(keep);
    request.acquire().await.unwrap().release().await.unwrap();
    let (readers, permits) = (ours.rw_lock("rw"), ours.semaphore("s", 1));
    server.command(&["SET", "s", "1"]).await;
    let request = readers.write().hold_at_least(keep);
    request.acquire().await.unwrap().release().await.unwrap();
    let request = permits.permit().hold_at_least(keep);
    request.acquire().await.unwrap().release().await.unwrap();
    for lock in [
        other.lock("job"),
        other.rw_lock("rw").read(),
        other.semaphore("s", 1).permit(),
    ] {
        assert!(lock.try_acquire().await.unwrap().is_none());
    }
    let rest: i64 = server.query(&["PTTL", "job"]).await;
    assert!(rest > 0 && rest <= 1500, "{rest}");
    let _ = other.lock("job").acquire().await.unwrap();
    let _ = other.rw_lock("rw").read().acquire().await.unwrap();
    let _ = other.semaphore("s", 1).permit().acquire().await.unwrap();
}

#[tokio::test]
async fn a_writer_becomes_a_reader_and_others_read_beside_it() {
    let server = RedisServer::start().await;
    let (ours, other) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let writer = ours.rw_lock("k").write().acquire().await.unwrap();
    let reading = tokio::spawn(other.rw_lock("k").read().acquire());
    writer.downgrade().await.unwrap();
    let reader = reading.await.unwrap().unwrap();
    assert!(
        other
            .rw_lock("k")
            .write()
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    writer.release().await.unwrap();
    let mode: String = server.query(&["HGET", "k", "mode"]).await;
    assert_eq!(mode, "read");
    reader.release().await.unwrap();
    assert!(server.keys("*").await.is_empty());
}

#[tokio::test]
async fn a_dropped_request_leaves_nothing_behind() {
    let server = RedisServer::start().await;
    let (ours, other) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let held = ours.lock("k").acquire().await.unwrap();
    for request in [other.lock("k"), other.lock("k").fair()] {
        let wait = tokio::time::timeout(Duration::from_millis(300), request.acquire());
        assert!(wait.await.is_err());
    }
    held.release().await.unwrap();
    eventually("nothing is left", async || {
        server.keys("*").await.is_empty()
            && server
                .channels()
                .await
                .iter()
                .all(|channel| channel.starts_with("%client:"))
    })
    .await;
}

#[tokio::test]
async fn what_redisson_can_not_carry_is_said_before() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let refused = ours
        .rw_lock("k")
        .read()
        .fenced()
        .acquire()
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("held in shares"), "{refused}");
    let rate = lock_runtime::Rate::per_second(1);
    let refused = ours.rate_limiter("k", rate).acquire().await.unwrap_err();
    assert!(refused.to_string().contains("RRateLimiter"), "{refused}");
    let refused = ours.latch("k").count().await.unwrap_err();
    assert!(refused.to_string().contains("RCountDownLatch"), "{refused}");
    assert!(server.keys("*").await.is_empty());
    for (url, why) in [
        ("redis-quorum://a,b,c?layout=redisson".to_owned(), "quorum"),
        (
            format!("{}?layout=redisson&replicas=1", server.url()),
            "replicas",
        ),
    ] {
        let refused = LockClient::builder().url(url).connect().await.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let twice = LockClient::builder().url(format!("{}?layout=redisson", server.url()));
    let twice = twice.layout(Layout::Redisson).connect().await.unwrap_err();
    assert!(
        twice
            .to_string()
            .contains("`layout` is given by the builder"),
        "{twice}"
    );
}

/// A waiter for each key listens on a channel of its own, at the node of the key.
#[tokio::test]
async fn channels_in_a_cluster_are_given_up_after_their_use_and_follow_their_slots() {
    let cluster = RedisCluster::start_masters().await;
    let (ours, other) = (client(&cluster, LEASE).await, client(&cluster, LEASE).await);
    let held = other.lock("k").acquire().await.unwrap();
    // Which of them is the first is not said.
    let waiting = tokio::spawn(ours.lock("k").run(async {}));
    let fair = tokio::spawn(ours.lock("k").fair().run(async {}));
    let listen = async |count| {
        eventually("the number of channels that are listened on", async || {
            cluster.channels_with("redisson_lock__channel:{k}").await == count
        })
        .await;
    };
    listen(2).await;
    let (slot, from) = (cluster.slot("k").await, cluster.of("k").await.port());
    let to = cluster.nodes.iter().find(|node| node.port() != from);
    cluster.move_slot(slot, to.unwrap()).await;
    listen(2).await;
    held.extend(LEASE).await.unwrap();
    held.release().await.unwrap();
    for waiting in [waiting, fair] {
        waiting.await.unwrap().unwrap();
    }
    listen(0).await;
}

/// Redisson 3.5 calls the keys of readers so that they may lie on another node, where no script of
/// this slot can look.
#[tokio::test]
async fn readers_that_have_died_hold_up_no_writer_in_a_cluster() {
    let cluster = RedisCluster::start_masters().await;
    let (ours, other) = (client(&cluster, LEASE).await, client(&cluster, LEASE).await);
    for key in ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"] {
        let reads = ours.rw_lock(key).read().acquire().await.unwrap();
        let field = "0b5e0de8-4f3c-4a5e-9f57-a2b1c3d4e5f6:1";
        cluster
            .of(key)
            .await
            .command(&["HSET", key, field, "1"])
            .await;
        reads.release().await.unwrap();
        let writes = other.rw_lock(key).write().try_acquire().await.unwrap();
        writes.unwrap().release().await.unwrap();
    }
}

/// A node that loses a slot ends its subscriptions of itself, and then refuses to end them. No
/// reply may go to another command.
#[tokio::test]
async fn replies_stay_in_order_when_a_slot_moves_as_its_channel_is_given_up() {
    let cluster = RedisCluster::start_masters().await;
    let (from, to) = (&cluster.nodes[0], &cluster.nodes[1]);
    let mut keys = Vec::new();
    for key in (0..).map(|number| format!("k{number}")) {
        if cluster.of(&key).await.port() == from.port() {
            keys.push(key);
        }
        if keys.len() == 3 {
            break;
        }
    }
    let [waited, free, busy] = [&*keys[0], &*keys[1], &*keys[2]];
    let proxy = Proxy::start(from.addr()).await;
    let url = format!("{}?layout=redisson", cluster.url());
    let url = format!("{url}&map={}>{}", from.addr(), proxy.addr());
    let builder = LockClient::builder()
        .url(url)
        .wait(Duration::from_millis(50));
    let one = builder.command_timeout(LEASE).connect().await.unwrap();
    let other = client(&cluster, LEASE).await;
    let _busy = other.lock(busy).acquire().await.unwrap();
    let held = other.lock(waited).acquire().await.unwrap();
    assert!(one.lock(waited).acquire().await.unwrap_err().is_busy());
    one.lock(free).run(async {}).await.unwrap();
    held.release().await.unwrap();
    proxy.freeze();
    // It is given up after two looks, two seconds apart. What is sent then waits for the network.
    tokio::time::sleep(Duration::from_secs(6)).await;
    cluster.move_slot(cluster.slot(waited).await, to).await;
    let first = tokio::spawn(one.lock(free).try_acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = tokio::spawn(one.lock(busy).try_acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    proxy.thaw();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert!(matches!(first, Ok(Some(_))), "{first:?}");
    assert!(matches!(second, Ok(None)), "{second:?}");
}

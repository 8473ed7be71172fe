//! Holds that replicas have to confirm, and what a failover does without that.

use std::time::{Duration, Instant};

use lock_runtime::{Lock, LockClient, LockError, LostReason, StoreErrorKind};
use lock_testkit::{Proxy, RedisCluster, RedisServer, SentinelGroup, eventually};

use crate::{SLACK, client, config, unavailable};

const TIMEOUT: Duration = Duration::from_millis(100);

/// A client whose holds need the confirmation of one replica.
async fn confirmed(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url).replicas(1, TIMEOUT);
    builder.connect().await.unwrap()
}

/// All locks of a master.
async fn locks(master: &RedisServer) -> Vec<String> {
    let mut keys = master.keys("*").await;
    keys.retain(|key| !key.contains("%fence"));
    keys
}

fn every_kind(client: &LockClient) -> Vec<Lock> {
    vec![
        client.lock("plain"),
        client.lock("fenced").fenced(),
        client.lock("fair").fair(),
        client.rw_lock("read").read(),
        client.rw_lock("write").write(),
        client.semaphore("permits", 3).permits(2),
        client.multi_lock(["several:1", "several:2"]),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_stands_still_confirms_nothing_and_no_lock_is_left() {
    let master = RedisServer::start().await;
    let replica = master.start_replica().await;
    let client = confirmed(&master.url()).await;
    for lock in every_kind(&client) {
        let guard = lock.acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    replica.pause();
    for lock in every_kind(&client) {
        let text = format!("{lock:?}");
        let error = lock.try_acquire().await.unwrap_err();
        assert!(
            error.to_string().contains("0 of the 1 asked for"),
            "{text}: {error}"
        );
        assert_eq!(
            unavailable::<()>(Err(error)),
            StoreErrorKind::NotReplicated,
            "{text}"
        );
    }
    eventually("none of them is left on the master", async || {
        locks(&master).await.is_empty()
    })
    .await;
    // It is tried again within the wait.
    let waiting = tokio::spawn(client.lock("plain").acquire());
    tokio::time::sleep(4 * TIMEOUT).await;
    assert!(!waiting.is_finished());
    replica.resume();
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.is_held());
    assert_eq!(replica.keys("lock:plain").await, ["lock:plain"]);
}

/// The server ends each `WAIT` then, and refuses any later one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_confirmation_a_demotion_ends_goes_on() {
    let (master, other) = (RedisServer::start().await, RedisServer::start().await);
    let replica = master.start_replica().await;
    let builder = LockClient::builder().url(master.url());
    // Long enough for the demotion to meet it.
    let builder = builder.replicas(1, Duration::from_secs(1));
    let builder = builder.command_timeout(Duration::from_secs(2));
    let client = builder.connect().await.unwrap();
    // The server knows the scripts from then on. Of an unknown one, that is all that counts, and
    // what the `WAIT` behind it says does not.
    client.lock("k").run(async {}).await.unwrap();
    replica.pause();
    let lock = client.lock("k").wait(Duration::from_secs(60));
    let asking = tokio::spawn(async move { lock.acquire().await });
    eventually("it waits for the replica", async || {
        let clients: String = master.query(&["INFO", "clients"]).await;
        clients.contains("blocked_clients:1")
    })
    .await;
    let port = other.port().to_string();
    master.command(&["REPLICAOF", "127.0.0.1", &port]).await;
    // Its later tries are refused as well.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!asking.is_finished(), "{:?}", asking.await.unwrap());
    master.command(&["REPLICAOF", "NO", "ONE"]).await;
    replica.resume();
    drop(asking.await.unwrap().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_no_replica_confirms_is_none() {
    let master = RedisServer::start().await;
    let replica = master.start_replica().await;
    let client = confirmed(&master.url()).await;
    let lease = Duration::from_secs(2);
    let hold = async |key: &str| {
        let lock = client.lock(key).lease(lease).renew(true);
        lock.acquire().await.unwrap()
    };
    let (renewed, extended, shared) = (hold("renewed").await, hold("extended").await, {
        let lock = client.rw_lock("shared").read().lease(lease).renew(true);
        lock.acquire().await.unwrap()
    });
    // Its renewals are confirmed as long as the replica lives.
    tokio::time::sleep(2 * lease).await;
    assert!(renewed.is_held() && shared.is_held());
    replica.pause();
    let paused = Instant::now();
    let refused = extended.extend(Duration::from_secs(60)).await;
    assert_eq!(unavailable(refused), StoreErrorKind::NotReplicated);
    assert!(extended.remaining() <= lease);
    for guard in [&renewed, &extended, &shared] {
        guard.lost().await;
    }
    assert!(paused.elapsed() < lease + SLACK, "{:?}", paused.elapsed());
    // The master keeps the longer lease, but the client's belief counts.
    let left: i64 = master.query(&["PTTL", "lock:extended"]).await;
    assert!(left > 10_000, "{left}");
    let lost = renewed.release().await.unwrap_err();
    let LockError::Lost { reason, .. } = lost else {
        panic!("{lost:?}");
    };
    assert_eq!(reason, LostReason::NotRenewed);
    replica.resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_handed_over_is_confirmed_as_well() {
    let master = RedisServer::start().await;
    let replica = master.start_replica().await;
    let (plain, confirmed) = (client(&master.url()).await, confirmed(&master.url()).await);
    let held = plain.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(confirmed.lock("k").wait(Duration::from_secs(60)).acquire());
    crate::until_waiting(&plain, "k", 1).await;
    replica.pause();
    held.release().await.unwrap();
    eventually("it was handed over", async || {
        plain.inspect("k").await.unwrap().waiting == 0
    })
    .await;
    tokio::time::sleep(3 * TIMEOUT).await;
    assert!(!waiting.is_finished());
    replica.resume();
    assert!(waiting.await.unwrap().unwrap().is_held());
}

/// Two holders in a row, with a failover to a replica that the writes do not reach. Returns both
/// tokens, if there are two.
async fn failover(
    connect: impl AsyncFn(&str) -> LockClient,
) -> Result<(u64, Option<u64>), LockError> {
    let master = RedisServer::start().await;
    let link = Proxy::start(master.addr()).await;
    let replica = master.start_replica_by(link.addr()).await;
    let old = connect(&master.url()).await;
    // The connections are made, and the replica hears everything.
    let earlier = old.lock("k").fenced().acquire().await?;
    let earlier_token = u64::from(earlier.fencing_token().unwrap());
    earlier.release().await?;
    eventually("the replica has heard of the release", async || {
        replica.keys("lock:k").await.is_empty()
    })
    .await;
    link.freeze();
    let first = old.lock("k").fenced().wait(SLACK).acquire().await?;
    let first_token = u64::from(first.fencing_token().unwrap());
    assert!(first_token > earlier_token);
    master.kill();
    link.cut();
    replica.promote().await;
    let second = client(&replica.url()).await;
    let second = second.lock("k").fenced().try_acquire().await?;
    assert!(first.is_held());
    let second_token = second.and_then(|guard| guard.fencing_token());
    Ok((first_token, second_token.map(u64::from)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_confirmation_a_failover_gives_two_holders_and_tokens_still_rise() {
    let (first, second) = failover(client).await.unwrap();
    assert!(second.unwrap() > first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_confirmation_the_same_failover_has_no_first_holder() {
    let refused = failover(confirmed).await;
    assert_eq!(unavailable(refused), StoreErrorKind::NotReplicated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmed_lock_survives_the_failover() {
    let master = RedisServer::start().await;
    let replica = master.start_replica().await;
    let (old, new) = (
        confirmed(&master.url()).await,
        LockClient::builder().url(replica.url()),
    );
    let guard = old.lock("k").acquire().await.unwrap();
    master.kill();
    replica.promote().await;
    let new = new.connect().await.unwrap();
    assert!(new.lock("k").try_acquire().await.unwrap().is_none());
    assert!(guard.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_sentinels_a_confirmed_lock_is_on_the_next_master_and_renewed_there() {
    let group = SentinelGroup::start().await;
    let old = group.master().await;
    let other = client(&group.url()).await;
    let lease = Duration::from_secs(30);
    let acquire = async |count| {
        let url = format!("{}?replicas={count}&replicas_timeout=200ms", group.url());
        let client = client(&url).await;
        let lock = client.lock(format!("by:{count}"));
        lock.lease(lease).renew(true).acquire().await.unwrap()
    };
    // Either replica has it, whichever is chosen.
    let both = acquire(2).await;
    old.kill();
    group.until_failed_over(old).await;
    let new = group.master().await;
    assert_eq!(new.keys("lock:by:2").await, ["lock:by:2"]);
    assert!(both.is_held());
    // Now there is only one replica left to confirm.
    eventually("it has the other as its replica", async || {
        let information: String = new.query(&["INFO", "replication"]).await;
        information.contains("connected_slaves:1") && information.contains("state=online")
    })
    .await;
    let one = acquire(1).await;
    eventually("the replica confirms in time", async || {
        one.extend(2 * lease).await.is_ok()
    })
    .await;
    eventually("its connection is there, and one confirms", async || {
        unavailable(both.extend(2 * lease).await) == StoreErrorKind::NotReplicated
    })
    .await;
    let busy = other.lock("by:2").wait(Duration::from_secs(5)).acquire();
    assert!(busy.await.unwrap_err().is_busy());
}

/// A reply without enough replicas is a sign of life of the master. Silence is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_master_is_reported_as_such_and_not_as_too_few_replicas() {
    let master = RedisServer::start().await;
    let _replica = master.start_replica().await;
    let client = confirmed(&master.url()).await;
    let held = client.lock("held").acquire().await.unwrap();
    master.pause();
    let refused = held.extend(Duration::from_secs(60)).await;
    assert_eq!(unavailable(refused), StoreErrorKind::Timeout);
    let refused = client.lock("k").try_acquire().await;
    assert_eq!(unavailable(refused), StoreErrorKind::Timeout);
    master.resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_confirmed_at_the_same_time_share_a_round_trip_and_delay_nothing_else() {
    let master = RedisServer::start().await;
    let replica = master.start_replica().await;
    let timeout = Duration::from_secs(4);
    let builder = LockClient::builder().url(master.url());
    let builder = builder.command_timeout(2 * timeout);
    let builder = builder.replicas(1, timeout);
    let client = builder.connect().await.unwrap();
    let held = client.lock("held").acquire().await.unwrap();
    replica.pause();
    master.reset_stats().await;
    let tasks = (0..200).map(|at| tokio::spawn(client.lock(format!("k:{at}")).try_acquire()));
    let tasks: Vec<_> = tasks.collect();
    eventually("they wait for their confirmation", async || {
        master.command_calls("wait").await > 0
    })
    .await;
    let started = Instant::now();
    held.release().await.unwrap();
    assert!(started.elapsed() < timeout / 2, "{:?}", started.elapsed());
    eventually("all are to be confirmed", async || {
        master.command_calls("set").await >= 200
    })
    .await;
    replica.resume();
    let mut guards = Vec::new();
    for task in tasks {
        guards.push(task.await.unwrap().unwrap().unwrap());
    }
    let waits = master.command_calls("wait").await;
    assert!(waits <= 20, "{waits}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_hold_is_told_from_an_unconfirmed_one() {
    let master = RedisServer::start().await;
    let replica = master.start_replica().await;
    let timeout = Duration::from_secs(1);
    let builder = LockClient::builder().url(master.url());
    let builder = builder.command_timeout(6 * timeout);
    let client = builder.replicas(1, timeout).connect().await.unwrap();
    let gone = client.lock("gone").acquire().await.unwrap();
    replica.pause();
    master.command(&["DEL", "lock:gone"]).await;
    master.reset_stats().await;
    let first = tokio::spawn(client.lock("first").try_acquire());
    eventually("it waits for its confirmation", async || {
        master.command_calls("wait").await > 0
    })
    .await;
    // Both are confirmed together, behind that.
    let other = client.lock("other").try_acquire();
    let (extended, other) = tokio::join!(gone.extend(Duration::from_secs(60)), other);
    assert!(matches!(
        extended,
        Err(LockError::Lost {
            reason: LostReason::Gone,
            ..
        })
    ));
    let said = other.unwrap_err().to_string();
    assert!(said.contains("0 of the 1 asked for"), "{said}");
    assert_eq!(
        unavailable(first.await.unwrap()),
        StoreErrorKind::NotReplicated
    );
    replica.resume();
}

#[tokio::test]
async fn more_replicas_than_there_are_never_confirm() {
    let master = RedisServer::start().await;
    let _replica = master.start_replica().await;
    let url = format!("{}?replicas=2&replicas_timeout=400ms", master.url());
    let builder = LockClient::builder().url(url);
    let builder = builder.command_timeout(Duration::from_secs(2));
    let client = builder.connect().await.unwrap();
    // On a busy machine the one that there is may need more time than it has, now and then.
    eventually("the one confirms", async || {
        let error = client.lock("k").try_acquire().await.unwrap_err();
        let says = |many| error.to_string().contains(many);
        assert!(
            says("1 of the 2 asked for") || says("0 of the 2 asked for"),
            "{error}"
        );
        says("1 of the 2 asked for")
    })
    .await;
}

#[tokio::test]
async fn a_policy_that_can_not_be_kept_is_refused_at_the_start() {
    let server = RedisServer::start().await;
    let (url, ms) = (server.url(), Duration::from_millis);
    let with = |url: &str| LockClient::builder().url(url);
    for (builder, says) in [
        (with(&url).replicas(0, TIMEOUT), "confirms nothing"),
        (with(&url).replicas(1, Duration::ZERO), "is zero"),
        (
            with(&url).replicas(1, ms(251)),
            "more than half of `command_timeout`",
        ),
        (
            with(&url).command_timeout(ms(50)).replicas(1, ms(50)),
            "more than half",
        ),
        (with("memory:").replicas(1, TIMEOUT), "which has none"),
        (with("memory:?replicas=1"), "which has none"),
        (with(&format!("{url}?replicas=0")), "confirms nothing"),
        (with(&format!("{url}?replicas=no")), "not a number"),
        (
            with(&format!("{url}?replicas=1&replicas_timeout=0ms")),
            "is zero",
        ),
        (
            with(&format!("{url}?replicas=1")).replicas(1, TIMEOUT),
            "leave one of them out",
        ),
        (
            with("redis-quorum://h1,h2,h3?replicas=1"),
            "a quorum has no master",
        ),
        (
            with("redis-quorum://h1,h2,h3").replicas(1, TIMEOUT),
            "a quorum has no master",
        ),
    ] {
        let text = config(builder.clone().connect().await);
        assert!(text.contains(says), "{text}");
        assert!(builder.connect_lazy().is_err());
    }
}

#[tokio::test]
async fn every_url_of_a_master_can_ask_for_replicas() {
    for url in [
        "redis://127.0.0.1:1",
        "rediss://127.0.0.1:1",
        "redis+unix:///no/such/socket",
        "redis-sentinel://127.0.0.1:1,127.0.0.1:2/mymaster",
        "rediss-sentinel://127.0.0.1:1/mymaster?sentinel_user=u&sentinel_password=p",
        "redis-cluster://127.0.0.1:1,127.0.0.1:2",
        "rediss-cluster://127.0.0.1:1",
    ] {
        let sign = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{sign}replicas=1&replicas_timeout=100ms");
        let client = LockClient::builder().url(&url).connect_lazy();
        assert!(client.is_ok(), "{url}: {:?}", client.err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_the_replica_of_the_node_that_has_the_lock_confirms() {
    let cluster = RedisCluster::start_patient().await;
    let client = client(&format!("{}?replicas=1", cluster.url())).await;
    let mut of_a_paused_one = 0;
    cluster.nodes[3].pause();
    for key in (0..30).map(|at| format!("k:{at}")) {
        let slot = cluster.slot(&format!("lock:{key}")).await;
        let paused = cluster.master_of(slot).await.port() == cluster.nodes[0].port();
        of_a_paused_one += usize::from(paused);
        if paused {
            let refused = client.lock(&*key).try_acquire().await;
            assert_eq!(unavailable(refused), StoreErrorKind::NotReplicated, "{key}");
        } else {
            assert!(client.lock(&*key).acquire().await.unwrap().is_held());
        }
    }
    assert!((1..30).contains(&of_a_paused_one));
    cluster.nodes[3].resume();
    let several = client.multi_lock(["a", "b", "c", "d", "e"]);
    assert!(several.acquire().await.unwrap().is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_the_slots_of_a_node_are_confirmed_together() {
    let cluster = RedisCluster::start_patient().await;
    let timeout = Duration::from_secs(4);
    let builder = LockClient::builder().url(cluster.url());
    let builder = builder.command_timeout(2 * timeout);
    let builder = builder.replicas(1, timeout);
    let client = builder.connect().await.unwrap();
    let (node, mut keys) = (&cluster.nodes[0], Vec::new());
    for key in (0..120).map(|at| format!("k:{at}")) {
        let slot = cluster.slot(&format!("lock:{key}")).await;
        if cluster.master_of(slot).await.port() == node.port() {
            keys.push(key);
        }
    }
    assert!(keys.len() >= 20, "{keys:?}");
    // Also for the first command to a node that does not know the script.
    node.reset_stats().await;
    cluster.nodes[3].pause();
    let tasks = keys.iter().map(|key| client.lock(&**key).try_acquire());
    let tasks: Vec<_> = tasks.map(tokio::spawn).collect();
    eventually("they wait for their confirmation", async || {
        node.command_calls("wait").await > 0
    })
    .await;
    eventually("all are to be confirmed", async || {
        node.command_calls("set").await >= keys.len() as u64
    })
    .await;
    cluster.nodes[3].resume();
    let mut guards = Vec::new();
    for task in tasks {
        guards.push(task.await.unwrap().unwrap().unwrap());
    }
    let waits = node.command_calls("wait").await;
    assert!(waits <= 12, "{waits} for {}", keys.len());
    for guard in &guards {
        guard.extend(Duration::from_secs(60)).await.unwrap();
    }
}

#[tokio::test]
async fn a_replica_that_takes_its_time_costs_no_connection() {
    let master = RedisServer::start().await;
    let replica = master.start_replica().await;
    let proxy = Proxy::start(master.addr()).await;
    let builder = LockClient::builder().url(proxy.url());
    let client = builder.replicas(1, 2 * TIMEOUT).connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    let connections = proxy.connections();
    replica.pause();
    for _ in 0..3 {
        let refused = client.lock("k").try_acquire().await;
        assert_eq!(unavailable(refused), StoreErrorKind::NotReplicated);
    }
    assert_eq!(proxy.connections(), connections);
    replica.resume();
}

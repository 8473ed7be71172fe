//! Slots that move and masters that die, under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{Decision, LockClient, LockError, Rate, StoreErrorKind};
use lock_testkit::{Proxy, RedisCluster, eventually};
use tokio::task::JoinSet;

use crate::load::Load;
use crate::self_descriptions::rewritten;
use crate::{SLACK, client, patient_client, unavailable, until_waiting};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_are_kept_while_their_slot_moves_under_load() {
    let cluster = RedisCluster::start_patient().await;
    let clients = [client(&cluster.url()).await, client(&cluster.url()).await];
    let slot = cluster.slot("moved").await;
    let guard = clients[0]
        .lock("{moved}:held")
        .fenced()
        .acquire()
        .await
        .unwrap();
    let waiting = clients[1]
        .lock("{moved}:held")
        .wait(Duration::from_secs(60))
        .acquire();
    let waiting = tokio::spawn(waiting);
    let moved = (0..3).map(|key| format!("{{moved}}:{key}"));
    let load = Load::start(&clients, moved.chain(["elsewhere".to_owned()]), 3);
    load.more_turns(20).await;
    let first = cluster.master_of(slot).await;
    for turn in 1..=3 {
        let from = cluster.master_of(slot).await;
        let at = cluster.nodes[..3]
            .iter()
            .position(|node| node.port() == from.port())
            .unwrap();
        let to = &cluster.nodes[(at + 1) % 3];
        cluster.begin_move(slot, to).await;
        // Commands on keys that are here, there, and in both places.
        tokio::time::sleep(Duration::from_millis(150 * turn)).await;
        cluster.end_move(slot, from, to).await;
        load.more_turns(20).await;
    }
    assert_eq!(
        cluster.master_of(slot).await.port(),
        first.port(),
        "once round"
    );
    load.finish().await;
    assert!(guard.is_held());
    assert!(!waiting.is_finished());
    guard.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_held());
}

/// Half of a slot's keys are at its old master and half at the new one, for longer than a lease.
async fn until_renewed_in_a_half_moved_slot(options: &str) {
    let cluster = RedisCluster::start_patient().await;
    let url = format!("{}{options}", cluster.url());
    let client = patient_client(&url).await;
    let slot = cluster.slot("apart").await;
    let lease = Duration::from_secs(5);
    let take = |key: &'static str| client.lock(key).lease(lease).renew(true).acquire();
    let keys = ["{apart}:a", "{apart}:b"];
    let both = client.multi_lock(keys).lease(lease).renew(true);
    let both = both.acquire().await.unwrap();
    let (one, other) = tokio::join!(take("{apart}:c"), take("{apart}:d"));
    let guards = [both, one.unwrap(), other.unwrap()];
    let from = cluster.master_of(slot).await;
    let masters = &cluster.nodes[..3];
    let at = masters.iter().position(|node| node.port() == from.port());
    let to = &masters[(at.unwrap() + 1) % 3];
    cluster.begin_move(slot, to).await;
    let port = to.port().to_string();
    for key in ["lock:{apart}:a", "lock:{apart}:c"] {
        from.command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"])
            .await;
    }
    tokio::time::sleep(3 * lease).await;
    let held: Vec<bool> = guards.iter().map(lock_runtime::Guard::is_held).collect();
    assert_eq!(held, [true; 3]);
    cluster.end_move(slot, from, to).await;
    for guard in guards {
        guard.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_whose_keys_lie_apart_for_longer_than_their_lease_are_kept() {
    until_renewed_in_a_half_moved_slot("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_whose_keys_lie_apart_are_confirmed_by_replicas_of_both_masters() {
    until_renewed_in_a_half_moved_slot("?replicas=1&replicas_timeout=800ms").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_redirected_is_carried_out_once() {
    let cluster = RedisCluster::start_patient().await;
    let client = patient_client(&cluster.url()).await;
    let slot = cluster.slot("moved").await;
    // A repeat would change this: each command takes one token, and one comes back in 25 s.
    let limiter = client.rate_limiter("{moved}:tokens", Rate::per_hour(140).burst(100_000));
    let (done, taken) = (AtomicBool::new(false), AtomicU32::new(0));
    let takes = async {
        while !done.load(Ordering::Acquire) {
            let decision = limiter.try_acquire().await.unwrap();
            let taken = taken.fetch_add(1, Ordering::Relaxed) + 1;
            let Decision::Passed { remaining, .. } = decision else {
                panic!("{decision:?}");
            };
            assert_eq!(remaining, 100_000 - taken);
        }
    };
    // However long a busy machine needs for them.
    let more_are_taken = async || {
        let wanted = taken.load(Ordering::Relaxed) + 20;
        eventually("more are taken", async || {
            taken.load(Ordering::Relaxed) >= wanted
        })
        .await;
    };
    let moves = async {
        for turn in 1..=3 {
            let from = cluster.master_of(slot).await;
            let mut nodes = cluster.nodes[..3].iter();
            let to = nodes.find(|node| node.port() != from.port()).unwrap();
            cluster.begin_move(slot, to).await;
            // Commands for a key that is here, and then for one that is there.
            tokio::time::sleep(Duration::from_millis(50 * turn)).await;
            more_are_taken().await;
            cluster.end_move(slot, from, to).await;
            tokio::time::sleep(Duration::from_millis(50 * turn)).await;
            more_are_taken().await;
        }
        done.store(true, Ordering::Release);
    };
    tokio::join!(takes, moves);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_and_waiters_carry_on_when_a_master_is_killed_under_load() {
    let cluster = RedisCluster::start().await;
    let clients = [client(&cluster.url()).await, client(&cluster.url()).await];
    let slot = cluster.slot("dies").await;
    let guard = clients[0]
        .lock("{dies}:held")
        .lease(Duration::from_secs(30))
        .renew(true)
        .acquire()
        .await
        .unwrap();
    let waiting = clients[1]
        .lock("{dies}:held")
        .wait(Duration::from_secs(120))
        .acquire();
    let waiting = tokio::spawn(waiting);
    let others = (0..6).map(|key| format!("other:{key}"));
    let load = Load::start(&clients, others.chain(["{dies}:load".to_owned()]), 2);
    load.more_turns(20).await;
    let old = cluster.master_of(slot).await;
    // The last acknowledged writes may not have reached the replica yet.
    load.forgive();
    old.kill();
    cluster.until_failed_over(slot, old).await;
    load.more_turns(20).await;
    load.strict_again().await;
    load.more_turns(20).await;
    load.finish().await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stands_still_is_replaced_and_grants_nothing_when_it_wakes_up() {
    let cluster = RedisCluster::start().await;
    let clients = [client(&cluster.url()).await, client(&cluster.url()).await];
    let key = "{stops}:held";
    let slot = cluster.slot("stops").await;
    let old = cluster.master_of(slot).await;
    let hold = clients[0].lock(key).lease(Duration::from_secs(60));
    let guard = hold.renew(true).acquire().await.unwrap();
    let waiting = clients[1].lock(key).wait(Duration::from_secs(120));
    let waiting = tokio::spawn(waiting.acquire());
    crate::until_waiting(&clients[0], key, 1).await;
    let replicas = cluster.nodes[3..].iter();
    eventually("a replica has both", async || {
        let mut having = 0;
        for replica in replicas.clone() {
            having += replica.keys("lock:*stops*").await.len();
        }
        having == 2
    })
    .await;
    old.pause();
    cluster.until_failed_over(slot, old).await;
    old.resume();
    // It still believes to be the master, until it hears otherwise.
    for _ in 0..100 {
        match clients[1].lock(key).try_acquire().await {
            Ok(None) | Err(LockError::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    eventually("the new master renews", async || {
        guard.extend(Duration::from_secs(90)).await.is_ok()
    })
    .await;
    assert!(!waiting.is_finished());
    guard.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_held());
}

/// However many wait for an answer of the silent one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_at_one_node_does_not_wait_for_those_at_a_silent_one() {
    const MANY: usize = 6000;
    let cluster = RedisCluster::start_patient().await;
    let (holder, other) = (client(&cluster.url()).await, client(&cluster.url()).await);
    let silent = cluster.master_of(cluster.slot("silent").await).await;
    let mut tags = (0..).map(|number| format!("tag{number}"));
    let elsewhere = loop {
        let tag = tags.next().unwrap();
        let master = cluster.master_of(cluster.slot(&tag).await).await;
        if master.port() != silent.port() {
            break format!("{{{tag}}}:k");
        }
    };
    let long = Duration::from_secs(600);
    let mut taking = JoinSet::new();
    for number in 0..MANY {
        let lock = holder.lock(format!("{{silent}}:{number}")).lease(long);
        taking.spawn(lock.wait(long).acquire());
    }
    let guards: Vec<_> = taking
        .join_all()
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let last = holder.lock(elsewhere.as_str()).lease(long);
    let last = last.acquire().await.unwrap();
    silent.pause();
    drop(guards);
    drop(last);
    let next = other.lock(elsewhere.as_str()).wait(Duration::from_secs(5));
    let next = next.acquire().await;
    let left = holder.stats().undoing;
    silent.resume();
    assert!(next.is_ok(), "{next:?}");
    assert!(left >= MANY, "{left}");
}

/// One key for each master, and connections to all of them, so that later steps take no time.
async fn one_key_of_each_master(cluster: &RedisCluster, client: &LockClient) -> Vec<String> {
    let mut keys = Vec::new();
    for master in &cluster.nodes[..3] {
        for number in 0.. {
            let key = format!("k:{number}");
            let slot = cluster.slot(&format!("lock:{key}")).await;
            if cluster.master_of(slot).await.port() == master.port() {
                keys.push(key);
                break;
            }
        }
        let key = keys.last().unwrap().as_str();
        client.lock(key).run(async {}).await.unwrap();
    }
    keys
}

/// Takes locks of the other masters all the time, until the task is stopped.
fn traffic(client: &LockClient, keys: &[String]) -> tokio::task::JoinHandle<()> {
    let (client, keys) = (client.clone(), keys.to_vec());
    tokio::spawn(async move {
        loop {
            for key in &keys {
                let _ = client.lock(format!("{{{key}}}:load")).run(async {}).await;
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stands_still_says_nothing_about_the_locks_of_another() {
    const WAIT: Duration = Duration::from_secs(5);
    let cluster = RedisCluster::start().await;
    let clients = [
        patient_client(&cluster.url()).await,
        patient_client(&cluster.url()).await,
    ];
    let keys = one_key_of_each_master(&cluster, &clients[0]).await;
    one_key_of_each_master(&cluster, &clients[1]).await;
    let busy = keys[1].as_str();
    let guard = clients[1].lock(busy).acquire().await.unwrap();
    // No replica may take over: this part of the cluster stays down.
    for replica in &cluster.nodes[3..] {
        replica.pause();
    }
    cluster.nodes[0].pause();
    let load = traffic(&clients[0], &keys[1..]);
    // The requests behind the first do not ask the store themselves, and each has another wait.
    let waits = |key: &str, number: u32| {
        let lock = clients[0].lock(key);
        tokio::spawn(lock.wait(WAIT + number * (WAIT / 20)).acquire())
    };
    let of_the_dead: Vec<_> = (0..4).map(|number| waits(&keys[0], number)).collect();
    let of_the_busy: Vec<_> = (0..4).map(|number| waits(busy, number)).collect();
    for one in of_the_busy {
        let answer = one.await.unwrap();
        assert!(matches!(answer, Err(LockError::Busy { .. })), "{answer:?}");
    }
    for one in of_the_dead {
        let answer = one.await.unwrap();
        let silent = matches!(answer, Err(LockError::Unavailable { .. }));
        assert!(silent, "{answer:?}");
    }
    load.abort();
    assert!(guard.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_without_end_for_a_master_that_stands_still_ends_while_others_answer() {
    const PATIENCE: Duration = Duration::from_secs(4);
    let cluster = RedisCluster::start().await;
    let builder = LockClient::builder().url(cluster.url()).wait(PATIENCE);
    let client = builder
        .connect_timeout(PATIENCE * 2)
        .connect()
        .await
        .unwrap();
    let keys = one_key_of_each_master(&cluster, &client).await;
    for replica in &cluster.nodes[3..] {
        replica.pause();
    }
    cluster.nodes[0].pause();
    let load = traffic(&client, &keys[1..]);
    let began = Instant::now();
    let waits = |_| tokio::spawn(client.lock(keys[0].as_str()).wait_forever().acquire());
    let waiting: Vec<_> = (0..3).map(waits).collect();
    for one in waiting {
        // If they took turns, each would need this time again.
        let answer = tokio::time::timeout(PATIENCE * 2, one)
            .await
            .unwrap()
            .unwrap();
        let silent = matches!(answer, Err(LockError::Unavailable { .. }));
        assert!(silent, "{answer:?}");
    }
    assert!(began.elapsed() < PATIENCE * 2, "{:?}", began.elapsed());
    load.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stands_still_costs_no_lock_of_the_others_and_makes_no_storm() {
    let cluster = RedisCluster::start().await;
    let client = patient_client(&cluster.url()).await;
    let keys = one_key_of_each_master(&cluster, &client).await;
    // One lock at each master, taken at once, so that they are renewed together.
    let lease = Duration::from_secs(3);
    let take = |key: &String| {
        let lock = client.lock(key.as_str()).lease(lease);
        lock.renew(true).acquire()
    };
    let taken = tokio::join!(take(&keys[0]), take(&keys[1]), take(&keys[2]));
    let mut guards = vec![taken.0.unwrap(), taken.1.unwrap(), taken.2.unwrap()];
    // No replica may take over: this part of the cluster stays down.
    for replica in &cluster.nodes[3..] {
        replica.pause();
    }
    let (dead, alive) = (&cluster.nodes[0], &cluster.nodes[1]);
    let before = alive.command_calls("cluster|slots").await;
    dead.pause();
    let dies = guards.remove(0);
    eventually("its lock is lost", async || !dies.is_held()).await;
    // Several leases of the other locks.
    tokio::time::sleep(2 * lease).await;
    assert!(guards.iter().all(lock_runtime::Guard::is_held));
    let asked = alive.command_calls("cluster|slots").await - before;
    assert!(asked <= 60, "asked {asked} times where the slots are");
    for guard in guards {
        guard.release().await.unwrap();
    }
}

/// A node that was just started refuses commands for keys for some seconds, and confirms
/// subscriptions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_was_started_again_answers_each_request_with_its_own_reply() {
    let cluster = RedisCluster::start_masters().await;
    let client = patient_client(&cluster.url()).await;
    let keys = one_key_of_each_master(&cluster, &client).await;
    for (node, key) in cluster.nodes.iter().zip(&keys) {
        node.restart().await;
        let lock = client.lock(key.as_str()).wait(20 * SLACK);
        let guard = lock.acquire().await.unwrap();
        // Nobody else has it, and the store says so.
        let other = client.lock(key.as_str()).try_acquire().await;
        assert!(matches!(other, Ok(None)), "{other:?}");
        let seen = client.inspect(key.as_str()).await.unwrap();
        assert!(seen.held_by.is_some(), "{key}");
        guard.release().await.unwrap();
    }
    assert_eq!(client.stats().release_failures, 0);
}

/// Scripts run there, and the server refuses their first write in other words than a command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_outlasts_a_cluster_that_is_down_and_may_be_read() {
    let cluster = RedisCluster::start_masters().await;
    for node in &cluster.nodes {
        for (name, value) in [
            ("cluster-allow-reads-when-down", "yes"),
            ("cluster-require-full-coverage", "yes"),
            ("cluster-node-timeout", "1500"),
        ] {
            node.command(&["CONFIG", "SET", name, value]).await;
        }
    }
    let client = patient_client(&cluster.url()).await;
    let keys = one_key_of_each_master(&cluster, &client).await;
    let held = client.lock(keys[1].as_str()).acquire().await.unwrap();
    cluster.nodes[2].stop().await;
    for node in &cluster.nodes[..2] {
        eventually("it is down", async || {
            let says: String = node.query(&["CLUSTER", "INFO"]).await;
            says.contains("cluster_state:fail")
        })
        .await;
    }
    let lock = client.lock(keys[0].as_str());
    let refused = lock.clone().fenced().try_acquire().await;
    assert_eq!(unavailable(refused), StoreErrorKind::Loading);
    let released = held.release().await;
    assert_eq!(unavailable(released), StoreErrorKind::Loading);
    let waiting = tokio::spawn(lock.wait(20 * SLACK).acquire());
    cluster.nodes[2].restart().await;
    assert!(waiting.await.unwrap().is_ok());
}

/// A node passes messages of its shard on, and some come late: from a former master.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_another_node_passes_on_is_asked_for() {
    let cluster = RedisCluster::start_patient().await;
    let (one, two) = (client(&cluster.url()).await, client(&cluster.url()).await);
    let held = one.lock("k").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("k").acquire());
    until_waiting(&one, "k", 1).await;
    let slot = cluster.slot("lock:k").await;
    let master = cluster.master_of(slot).await;
    let mut places: Vec<String> = Vec::new();
    for name in master.keys("*k*").await {
        let queued = master.try_command(&["ZRANGE", &name, "0", "0"]).await;
        places.extend(
            queued
                .into_iter()
                .flat_map(redis::from_redis_value::<Vec<String>>)
                .flatten(),
        );
    }
    let place = places.first().unwrap();
    let owner = place.split(':').next().unwrap();
    let channels: Vec<String> = master.query(&["PUBSUB", "SHARDCHANNELS"]).await;
    let (asker, _) = owner.split_once('-').unwrap();
    let channel = channels.iter().find(|channel| channel.ends_with(asker));
    let mut nodes = cluster.nodes[..3].iter().zip(&cluster.nodes[3..]);
    let (_, replica) = nodes
        .find(|(node, _)| node.port() == master.port())
        .unwrap();
    let granted = format!("1 granted {owner} ");
    let began = Instant::now();
    for _ in 0..20 {
        let asked = master.command_calls("evalsha").await;
        replica
            .command(&["SPUBLISH", channel.unwrap(), &granted])
            .await;
        eventually("it asks", async || {
            master.command_calls("evalsha").await > asked
        })
        .await;
    }
    // At once, and not each second as without a message.
    assert!(began.elapsed() < Duration::from_secs(15));
    assert!(!waits.is_finished(), "it believes what is not so");
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}

/// Nobody reaches the bus of a node: it knows of no failover, and answers first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_the_others_have_replaced_does_not_decide_where_slots_are() {
    let cluster = RedisCluster::start_patient().await;
    let slot = cluster.slot("lock:k").await;
    let old = cluster.master_of(slot).await;
    let at = cluster
        .nodes
        .iter()
        .position(|node| node.port() == old.port());
    let new = &cluster.nodes[3 + at.unwrap()];
    let is_cut_off = Arc::new(AtomicBool::new(false));
    let (was, is) = (
        format!(":{}\r\n", old.port()),
        format!(":{}\r\n", new.port()),
    );
    let of_old = Arc::clone(&is_cut_off);
    let of_old = rewritten(old.addr(), move |reply| {
        if !of_old.load(Ordering::Relaxed) {
            return reply.to_owned();
        }
        if reply.starts_with("-MOVED") {
            return "-CLUSTERDOWN The cluster is down\r\n".to_owned();
        }
        let reply = reply.replace(&was, ":?\r\n").replace(&is, &was);
        reply.replace(":?\r\n", &is)
    });
    let mut pairs = vec![format!("{}>{}", old.addr(), of_old.await)];
    let mut slower = Vec::new();
    for node in &cluster.nodes {
        if node.port() != old.port() {
            let way = Proxy::start(node.addr()).await;
            way.delay_replies(Duration::from_millis(20));
            pairs.push(format!("{}>{}", node.addr(), way.addr()));
            slower.push(way);
        }
    }
    let url = format!("{}?map={}", cluster.url(), pairs.join(","));
    let client = client(&url).await;
    client.lock("k").run(async {}).await.unwrap();
    new.command(&["CLUSTER", "FAILOVER"]).await;
    cluster.until_failed_over(slot, old).await;
    is_cut_off.store(true, Ordering::Relaxed);
    eventually("its locks are there", async || {
        client.lock("k").run(async {}).await.is_ok()
    })
    .await;
}

//! Locks over three masters: all kinds, keys of several masters, and what each costs.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, Rate, StoreErrorKind};
use lock_testkit::{RedisCluster, RedisServer, eventually};

use crate::{client, config, patient_client, unavailable};

/// Keys that are spread over all masters.
fn keys() -> impl Iterator<Item = String> {
    (0..24).map(|key| format!("stock:{key}"))
}

/// A number that a node counts on its bus.
async fn counted(node: &RedisServer, what: &str) -> u64 {
    let information: String = node.query(&["CLUSTER", "INFO"]).await;
    let mut lines = information.lines();
    lines
        .find_map(|line| {
            line.strip_prefix(what)?
                .strip_prefix(':')?
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

async fn until_waiting(client: &LockClient, key: &str, places: usize) {
    eventually("all of them wait", async || {
        client.inspect(key).await.unwrap().waiting == places
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_works_on_every_node_and_hand_overs_do_not_go_to_all_of_them() {
    let cluster = RedisCluster::start_patient().await;
    let (one, two) = (client(&cluster.url()).await, client(&cluster.url()).await);
    for key in keys() {
        let lock = |client: &LockClient| client.lock(key.as_str()).fenced();
        let guard = lock(&one).acquire().await.unwrap();
        let first = guard.fencing_token().unwrap();
        assert!(lock(&two).try_acquire().await.unwrap().is_none());
        let waiting = tokio::spawn(lock(&two).acquire());
        until_waiting(&one, &key, 1).await;
        let released = Instant::now();
        guard.release().await.unwrap();
        let next = waiting.await.unwrap().unwrap();
        // By a message, not by the next look.
        assert!(
            released.elapsed() < Duration::from_millis(700),
            "{:?}",
            released.elapsed()
        );
        assert!(next.fencing_token().unwrap() > first);
        next.release().await.unwrap();

        let (read, semaphore, latch) = (format!("r:{key}"), format!("s:{key}"), format!("l:{key}"));
        let readers = (one.rw_lock(read.as_str()), two.rw_lock(read.as_str()));
        let (a, b) = (
            readers.0.read().acquire().await,
            readers.1.read().acquire().await,
        );
        assert!(readers.0.write().try_acquire().await.unwrap().is_none());
        a.unwrap().release().await.unwrap();
        b.unwrap().release().await.unwrap();
        let permit = one
            .semaphore(semaphore.as_str(), 1)
            .permit()
            .acquire()
            .await
            .unwrap();
        assert!(
            two.semaphore(semaphore.as_str(), 1)
                .permit()
                .try_acquire()
                .await
                .unwrap()
                .is_none()
        );
        permit.release().await.unwrap();
        let (set, waits) = (one.latch(latch.as_str()), two.latch(latch.as_str()));
        set.set(1).await.unwrap();
        let opened = tokio::spawn(async move { waits.wait(Duration::from_secs(10)).await });
        set.count_down().await.unwrap();
        opened.await.unwrap().unwrap();
        one.rate_limiter(key.as_str(), Rate::per_second(1))
            .acquire()
            .await
            .unwrap();
    }
    let (mut plain, mut sharded) = (0, 0);
    for node in &cluster.nodes {
        plain += counted(node, "cluster_stats_messages_publish_sent").await;
        sharded += counted(node, "cluster_stats_messages_publishshard_sent").await;
    }
    assert_eq!(plain, 0, "messages went to every node");
    assert!(sharded > 0, "no message went through the cluster at all");
    let mut with_keys = 0;
    for master in &cluster.nodes[..3] {
        with_keys += usize::from(master.command_calls("set").await > 0);
    }
    assert_eq!(with_keys, 3, "the keys lie at all three");
    assert!(two.health().await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_keys_over_several_slots_are_taken_all_or_none() {
    let cluster = RedisCluster::start_patient().await;
    let url = cluster.url();
    let (one, two) = (patient_client(&url).await, patient_client(&url).await);
    let all: Vec<String> = keys().collect();
    let of = |client: &LockClient| client.multi_lock(all.clone()).fenced();
    let guard = of(&one).try_acquire().await.unwrap().unwrap();
    assert_eq!(guard.fencing_tokens().unwrap().len(), all.len());
    for key in &all {
        assert!(
            two.lock(key.as_str())
                .try_acquire()
                .await
                .unwrap()
                .is_none(),
            "{key}"
        );
    }
    assert!(of(&two).try_acquire().await.unwrap().is_none());
    let waiting = tokio::spawn(of(&two).wait(Duration::from_secs(30)).acquire());
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();

    // The last key in order: the others were taken before, and are given back.
    let last = all.iter().max().unwrap().clone();
    let held = one.lock(last).acquire().await.unwrap();
    assert!(of(&two).try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    eventually("nothing is left", async || {
        let mut left = 0;
        for master in &cluster.nodes[..3] {
            let keys = master.keys("lock:*").await;
            left += keys.iter().filter(|key| !key.contains("%fence")).count();
        }
        left == 0
    })
    .await;

    // With one tag it is one command.
    let tagged = ["{t}:a", "{t}:b", "{t}:c"];
    let master = cluster.master_of(cluster.slot("{t}").await).await;
    let mut requests = master.requests().await;
    let guard = one.multi_lock(tagged).try_acquire().await.unwrap().unwrap();
    guard.release().await.unwrap();
    let sent = requests.take().await;
    let evals = sent
        .iter()
        .filter(|request| request.command.starts_with("eval"));
    assert!(evals.count() <= 4, "{sent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hash_tag_of_the_author_keeps_locks_together_and_odd_braces_are_refused() {
    let cluster = RedisCluster::start_patient().await;
    let client = client(&cluster.url()).await;
    let tagged = ["{tenant}", "{tenant}:stock:1", "a:{tenant}", "a:{tenant}:b"];
    let slot = cluster.slot("tenant").await;
    let master = cluster.master_of(slot).await;
    for key in tagged {
        let guard = client.lock(key).fair().fenced().acquire().await.unwrap();
        let waiting = tokio::spawn(client.lock(key).fair().acquire());
        until_waiting(&client, key, 1).await;
        let names = master.keys("*").await;
        assert!(names.contains(&format!("lock:{key}")), "{key}: {names:?}");
        guard.release().await.unwrap();
        waiting.await.unwrap().unwrap().release().await.unwrap();
    }
    let value = "1}{2";
    let key = lock_runtime::lock_key!("stock:<value>");
    assert!(client.lock(key).acquire().await.unwrap().is_held());
    for odd in ["a{", "}a", "{}", "{a}{b}", "{{a}}", "}a{", "a{}b{c}"] {
        let refused = client.lock(odd).acquire().await;
        assert!(
            matches!(refused, Err(LockError::InvalidKey { .. })),
            "{odd}"
        );
    }
}

#[tokio::test]
async fn a_cluster_url_for_one_server_is_told_and_the_reverse() {
    let (server, cluster) = tokio::join!(RedisServer::start(), RedisCluster::start());
    let url = format!("redis-cluster://{}", server.addr());
    let said = config(LockClient::builder().url(&url).connect().await);
    assert!(said.contains("redis://host:port"), "{said}");
    let lazy = LockClient::builder().url(&url).connect_lazy().unwrap();
    let refused = unavailable(lazy.lock("k").acquire().await);
    assert_eq!(refused, StoreErrorKind::Misconfigured);
    let url = format!("redis://{}", cluster.nodes[0].addr());
    let said = config(LockClient::builder().url(&url).connect().await);
    assert!(said.contains("redis-cluster://"), "{said}");
}

#[tokio::test]
async fn a_cluster_of_which_no_node_answers_is_unavailable_in_time() {
    // A port that a server has left may now belong to another one.
    let url = "redis-cluster://127.0.0.1:2,127.0.0.1:1";
    let asked = Instant::now();
    let refused = unavailable(LockClient::builder().url(url).connect().await);
    assert_eq!(refused, StoreErrorKind::Disconnected);
    assert!(asked.elapsed() < Duration::from_secs(1) + crate::SLACK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_refuses_a_sign_of_life_is_not_well() {
    let cluster = RedisCluster::start_patient().await;
    let client = client(&cluster.url()).await;
    client.health().await.unwrap();
    let node = &cluster.nodes[1];
    node.command(&["ACL", "SETUSER", "default", "-ping"]).await;
    let address = node.addr().to_string();
    for server in client.health().await.unwrap().servers {
        let mut findings = server.findings.iter().map(ToString::to_string);
        let is_told = findings.any(|found| found.contains("ping"));
        assert_eq!(is_told, server.address == address, "{server:?}");
    }
}

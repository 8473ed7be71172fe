//! Lists of servers of which the first are silent: they accept connections and say nothing.

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{RedisCluster, RedisServer, SentinelGroup, eventually_within};
use tokio::net::TcpListener;

/// Accepts and says nothing, until it is dropped.
async fn silent(count: usize) -> (Vec<TcpListener>, String) {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
    }
    let addresses = all.iter().map(|one| one.local_addr().unwrap().to_string());
    let addresses = addresses.collect::<Vec<_>>().join(",");
    (all, addresses)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_found_by_the_last_of_its_seeds() {
    let cluster = RedisCluster::start_patient().await;
    let (_silent, first) = silent(4).await;
    let url = format!("redis-cluster://{first},{}", cluster.nodes[1].addr());
    // With the default limits.
    let client = LockClient::builder().url(url).connect().await.unwrap();
    for key in 0..9 {
        drop(client.lock(format!("k:{key}")).acquire().await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_master_is_found_by_the_only_sentinel_that_is_not_silent() {
    let group = SentinelGroup::start().await;
    let (_silent, first) = silent(2).await;
    let url = format!(
        "redis-sentinel://{first},{}/mymaster",
        group.sentinels[0].addr()
    );
    let client = LockClient::builder().url(url).connect().await.unwrap();
    drop(client.lock("k").acquire().await.unwrap());
    let old = group.master().await;
    // It stands still, so that only the sentinel can say that another is the master.
    old.pause();
    group.until_failed_over(old).await;
    old.resume();
    let new: &RedisServer = group.master().await;
    let limit = Duration::from_secs(10);
    eventually_within(limit, "the client uses the new master", async || {
        let guard = client.lock("there").try_acquire().await;
        let is_there = new.keys("lock:there").await.len() == 1;
        drop(guard);
        is_there
    })
    .await;
}

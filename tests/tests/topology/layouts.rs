//! Locks as other libraries keep them, under sentinels and in a cluster.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{RedisCluster, RedisServer, SentinelGroup, eventually, wall_micros};

use crate::client;

const LAYOUTS: [&str; 3] = ["shedlock", "timestamp", "redisson"];
const LONG: Duration = Duration::from_secs(60);

async fn both(url: &str, layout: &str) -> (LockClient, LockClient) {
    let url = format!("{url}?layout={layout}");
    (client(&url).await, client(&url).await)
}

/// The key in Redis.
fn name(layout: &str, key: &str) -> String {
    match layout {
        "shedlock" => format!("job-lock:default:{key}"),
        _ => key.to_owned(),
    }
}

/// Holds a lock for a minute, as another program.
async fn hold_elsewhere(node: &RedisServer, layout: &str, name: &str) {
    let time = (wall_micros() / 1000 + 60_000).to_string();
    let thread = "0a1b2c3d-0000-4000-8000-000000000001:34";
    let job = "ADDED:2026-01-01T00:00:00.000Z@elsewhere";
    let hold = match layout {
        "redisson" => ["HSET", name, thread, "1"],
        "shedlock" => ["SET", name, job, "NX"],
        _ => ["SET", name, &time, "NX"],
    };
    node.command(&hold).await;
    node.command(&["PEXPIRE", name, "60000"]).await;
}

/// As the server writes it, whatever its type.
async fn value(server: &RedisServer, name: &str) -> Option<Vec<u8>> {
    server.query(&["DUMP", name]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_of_each_layout_is_kept_when_another_server_takes_over() {
    for layout in LAYOUTS {
        let group = SentinelGroup::start().await;
        let (one, two) = both(&group.url(), layout).await;
        // Sentinels that are short of a processor may need a second election.
        let lock = one.lock("k").lease(LONG).renew(true);
        let guard = lock.acquire().await.unwrap();
        let old = group.master().await;
        let name = name(layout, "k");
        let stored = value(old, &name).await;
        assert!(stored.is_some(), "{layout}");
        for server in &group.servers {
            eventually("a replica has the lock", async || {
                value(server, &name).await == stored
            })
            .await;
        }
        let waiting = tokio::spawn(two.lock("k").wait(2 * LONG).acquire());
        old.kill();
        group.until_failed_over(old).await;
        eventually("the new master is asked", async || {
            let found = two.inspect("k").await;
            found.is_ok_and(|found| found.holder.is_some())
        })
        .await;
        assert!(guard.is_held() && !waiting.is_finished(), "{layout}");
        guard.extend(LONG).await.unwrap();
        guard.release().await.unwrap();
        waiting.await.unwrap().unwrap().release().await.unwrap();
        assert_eq!(value(group.master().await, &name).await, None, "{layout}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_of_each_layout_is_on_the_node_of_its_slot() {
    let cluster = RedisCluster::start_masters().await;
    for layout in LAYOUTS {
        let (one, two) = both(&cluster.url(), layout).await;
        for key in (0..12).map(|key| match key % 3 {
            0 => format!("{{acme}}:stock:{key}"),
            _ => format!("stock:{key}"),
        }) {
            let name = name(layout, &key);
            let slot = cluster.slot(&name).await;
            let lock = |client: &LockClient| client.lock(key.as_str()).wait(LONG);
            let guard = lock(&one).acquire().await.unwrap();
            assert!(value(cluster.master_of(slot).await, &name).await.is_some());
            assert!(lock(&two).try_acquire().await.unwrap().is_none());
            let waiting = tokio::spawn(lock(&two).acquire());
            if key.ends_with('5') {
                let from = cluster.master_of(slot).await;
                let others = cluster.nodes.iter().find(|node| node.addr() != from.addr());
                cluster.move_slot(slot, others.unwrap()).await;
                guard.extend(LONG).await.unwrap();
            }
            guard.release().await.unwrap();
            waiting.await.unwrap().unwrap().release().await.unwrap();
            let node = cluster.master_of(slot).await;
            assert_eq!(value(node, &name).await, None, "{layout} {key}");
            hold_elsewhere(node, layout, &name).await;
            let busy = one.lock(key.as_str()).wait(Duration::ZERO).acquire().await;
            assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
            assert!(one.inspect(key.as_str()).await.unwrap().holder.is_some());
            node.command(&["DEL", &name]).await;
        }
        // Each lock for itself, on whichever node.
        let several = ["a", "b", "c"].map(str::to_owned);
        let all = one.multi_lock(several.clone()).acquire().await.unwrap();
        for key in several {
            assert!(two.lock(key).try_acquire().await.unwrap().is_none());
        }
        all.release().await.unwrap();
    }
}

//! Whoever waits is woken by the release of the other side, not by its next look. Those come each
//! second, and when a lease ends.

use std::time::{Duration, Instant};

use lock_runtime::{Lock, LockClient};
use lock_testkit::{RedisCluster, RedisServer, SentinelGroup, eventually};

use crate::servers::Servers;
use crate::{Java, client};

const LEASE: Duration = Duration::from_secs(30);

/// `REDISSON_WAKE_MS`, or what a busy machine needs.
fn bound() -> Duration {
    let bound = std::env::var("REDISSON_WAKE_MS").ok();
    Duration::from_millis(bound.map_or(500, |bound| bound.parse().unwrap()))
}

fn lock(client: &LockClient, kind: &str) -> Lock {
    match kind {
        "fair" => client.lock(kind).fair(),
        "fenced" => client.lock(kind).fenced(),
        "read" => client.rw_lock("rw").read(),
        "write" => client.rw_lock("rw").write(),
        "permit" => client.semaphore(kind, 1).permit(),
        _ => client.lock(kind),
    }
}

/// What the other side holds meanwhile.
fn against(kind: &str) -> &str {
    match kind {
        "read" => "write",
        kind => kind,
    }
}

fn key(kind: &str) -> &str {
    match kind {
        "read" | "write" => "rw",
        kind => kind,
    }
}

const KINDS: [&str; 6] = ["lock", "fenced", "fair", "write", "read", "permit"];

/// How many listen on the channels of this key.
async fn listeners(servers: &impl Servers, kind: &str) -> usize {
    servers.channels_with(&format!("{{{}}}", key(kind))).await
}

#[tokio::test]
async fn our_waiter_is_woken_by_redissons_release() {
    is_woken_by_redisson(&RedisServer::start().await).await;
}

#[tokio::test]
async fn redissons_waiter_is_woken_by_our_release() {
    wakes_redisson(&RedisServer::start().await).await;
}

/// Its messages stay on the node of a key's slot.
#[tokio::test]
async fn either_is_woken_by_the_others_release_in_a_cluster() {
    let cluster = RedisCluster::start_masters().await;
    is_woken_by_redisson(&cluster).await;
    wakes_redisson(&cluster).await;
}

#[tokio::test]
async fn either_is_woken_by_the_others_release_under_sentinels() {
    let group = SentinelGroup::builder().patient().start().await;
    is_woken_by_redisson(&group).await;
    wakes_redisson(&group).await;
}

async fn is_woken_by_redisson(servers: &impl Servers) {
    let Some(mut java) = Java::start(servers, LEASE).await else {
        return;
    };
    let ours = client(servers, LEASE).await;
    java.ask("t", "permits permit permit 1").await;
    for kind in KINDS {
        let (theirs, name) = (against(kind), key(kind));
        let mut best = Duration::MAX;
        // One try that is not woken by a look is proof enough: looks are a second apart.
        for _ in 0..3 {
            let taken = java
                .ask("t", &format!("take {theirs} {name} 1000 30000"))
                .await;
            assert!(taken.starts_with("took"), "{kind}: {taken}");
            let waiting = tokio::spawn(lock(&ours, kind).acquire());
            eventually("it listens", async || listeners(servers, kind).await > 0).await;
            // Right behind a look.
            tokio::time::sleep(Duration::from_millis(150)).await;
            let sent = Instant::now();
            assert_eq!(
                java.ask("t", &format!("give {theirs} {name}")).await,
                "gave"
            );
            let guard = waiting.await.unwrap().unwrap();
            best = best.min(sent.elapsed());
            guard.release().await.unwrap();
        }
        println!("{kind}: ours was woken within {best:?}");
        assert!(best < bound(), "{kind}: {best:?}");
    }
}

async fn wakes_redisson(servers: &impl Servers) {
    let Some(mut java) = Java::start(servers, LEASE).await else {
        return;
    };
    let ours = client(servers, LEASE).await;
    java.ask("t", "permits permit permit 1").await;
    for kind in KINDS {
        let name = key(kind);
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let guard = lock(&ours, against(kind)).acquire().await.unwrap();
            java.begin("t", &format!("take {kind} {name} 60000 30000"));
            eventually("it listens", async || listeners(servers, kind).await > 0).await;
            tokio::time::sleep(Duration::from_millis(150)).await;
            let released = Instant::now();
            guard.release().await.unwrap();
            let taken = java.answer("t").await;
            best = best.min(released.elapsed());
            assert!(taken.starts_with("took"), "{kind}: {taken}");
            assert_eq!(java.ask("t", &format!("give {kind} {name}")).await, "gave");
        }
        println!("{kind}: Redisson was woken within {best:?}");
        assert!(best < bound(), "{kind}: {best:?}");
    }
}

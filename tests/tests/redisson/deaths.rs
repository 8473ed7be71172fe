//! The watchdog of either side keeps its hold. When one dies, its lock is free after its lease, and
//! not before.

use std::time::{Duration, Instant};

use lock_runtime::{Lock, LockClient};
use lock_testkit::{ChildProcess, RedisServer};

use crate::{Java, LONG, client};

/// Renewed each second.
const LEASE: Duration = Duration::from_secs(3);

fn lock(client: &LockClient, kind: &str) -> Lock {
    match kind {
        "fair" => client.lock(kind).fair(),
        "read" => client.rw_lock(kind).write(),
        "write" => client.rw_lock(kind).read(),
        _ => client.lock(kind),
    }
}

#[tokio::test]
async fn the_watchdog_of_either_side_keeps_its_hold() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    for kind in ["lock", "fenced", "fair", "read", "write"] {
        let taken = java.ask(kind, &format!("take {kind} {kind} 0 -1")).await;
        assert!(taken.starts_with("took"), "{kind}: {taken}");
    }
    let mine = [
        ours.lock("mine").acquire().await.unwrap(),
        ours.rw_lock("mine-read").read().acquire().await.unwrap(),
        ours.rw_lock("mine-write").write().acquire().await.unwrap(),
    ];
    // Longer than a lease.
    tokio::time::sleep(LEASE * 2).await;
    for kind in ["lock", "fenced", "fair", "read", "write"] {
        assert!(
            lock(&ours, kind).try_acquire().await.unwrap().is_none(),
            "{kind}"
        );
    }
    assert!(mine.iter().all(|guard| guard.is_held()));
    for theirs in ["lock mine", "write mine-read", "read mine-write"] {
        let taken = java.ask("t", &format!("take {theirs} 0 -1")).await;
        assert_eq!(taken, "busy", "{theirs}");
    }
}

#[tokio::test]
async fn a_lock_of_a_redisson_that_died_is_free_after_its_lease_and_not_before() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    let kinds = ["lock", "fair", "read", "write"];
    for kind in kinds {
        let taken = java.ask(kind, &format!("take {kind} {kind} 0 -1")).await;
        assert!(taken.starts_with("took"), "{kind}: {taken}");
    }
    let waiting = kinds.map(|kind| tokio::spawn(lock(&ours, kind).acquire()));
    java.process.kill();
    let killed = Instant::now();
    // It renews at each third, so at least two thirds were left.
    tokio::time::sleep(LEASE / 2).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    for waiting in waiting {
        let guard = waiting.await.unwrap().unwrap();
        assert!(
            killed.elapsed() < LEASE + Duration::from_secs(3),
            "{:?}",
            killed.elapsed()
        );
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_of_ours_is_free_for_redisson_when_we_have_died() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let mut worker = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    worker.send(&format!("connect {}?layout=redisson", server.url()));
    worker.wait_for("connected").await;
    worker.send("hold 1 k lease=3000 renew");
    worker.wait_for("held").await;
    java.begin("t", "take lock k 30000 -1");
    worker.kill();
    let killed = Instant::now();
    let taken = java.answer("t").await;
    assert!(taken.starts_with("took"), "{taken}");
    let took = killed.elapsed();
    assert!(
        took > LEASE / 2 && took < LEASE + Duration::from_secs(3),
        "{took:?}"
    );
}

#[tokio::test]
async fn a_process_that_died_in_the_queue_of_a_fair_lock_blocks_nobody_for_long() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, Duration::from_secs(30)).await else {
        return;
    };
    let Some(mut dead) = Java::start(&server, Duration::from_secs(30)).await else {
        return;
    };
    let ours = client(&server, Duration::from_secs(30)).await;
    assert!(java.ask("t", "take fair k 0 -1").await.starts_with("took"));
    // For Redisson, its place lasts for minutes.
    dead.begin("t", "take fair k 600000 -1");
    lock_testkit::eventually("it is in the queue", async || {
        let length: usize = server.query(&["LLEN", "redisson_lock_queue:{k}"]).await;
        length == 1
    })
    .await;
    let waiting = tokio::spawn(ours.lock("k").fair().wait(LONG).acquire());
    dead.process.kill();
    assert_eq!(java.ask("t", "give fair k").await, "gave");
    let freed = Instant::now();
    let guard = waiting.await.unwrap().unwrap();
    assert!(
        freed.elapsed() < Duration::from_secs(20),
        "{:?}",
        freed.elapsed()
    );
    guard.release().await.unwrap();
}

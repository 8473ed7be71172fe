//! The watchdog of either side keeps its hold. When one dies, its lock is free after its lease, and
//! not before.

use std::time::{Duration, Instant};

use lock_runtime::{Lock, LockClient};
use lock_testkit::{ChildProcess, RedisServer};

use crate::servers::Servers;
use crate::{Java, LONG, client};

/// Renewed each second.
const LEASE: Duration = Duration::from_secs(3);
/// What a busy machine adds.
const SLACK: Duration = Duration::from_secs(3);

/// What a test takes, and what the other side asks for meanwhile.
pub(crate) const KINDS: [[&str; 2]; 7] = [
    ["lock", "lock"],
    ["spin", "spin"],
    ["fenced", "fenced"],
    ["fair", "fair"],
    ["read", "write"],
    ["write", "read"],
    ["permit", "permit"],
];

/// A request for the key that has the name of what is held.
pub(crate) fn lock(client: &LockClient, key: &str, kind: &str) -> Lock {
    match kind {
        "fenced" => client.lock(key).fenced(),
        "fair" => client.lock(key).fair(),
        "read" => client.rw_lock(key).read(),
        "write" => client.rw_lock(key).write(),
        "permit" => client.semaphore(key, 1).permit(),
        _ => client.lock(key),
    }
}

#[tokio::test]
async fn the_watchdog_of_either_side_keeps_its_hold() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    let mut mine = Vec::new();
    for [kind, _] in KINDS {
        let key = format!("mine-{kind}");
        if kind == "permit" {
            java.ask("t", &format!("permits permit {key} 1")).await;
        } else {
            // Its permits have no watchdog.
            let taken = java.ask(kind, &format!("take {kind} {kind} 0 -1")).await;
            assert!(taken.starts_with("took"), "{kind}: {taken}");
        }
        mine.push(lock(&ours, &key, kind).acquire().await.unwrap());
    }
    // Longer than a lease.
    tokio::time::sleep(LEASE * 2).await;
    for [kind, other] in KINDS {
        let tried = lock(&ours, kind, other).try_acquire().await;
        assert!(kind == "permit" || tried.unwrap().is_none(), "{kind}");
        let take = format!("take {other} mine-{kind} 0 1000");
        assert_eq!(java.ask("t", &take).await, "busy", "{kind}");
    }
    assert!(mine.iter().all(|guard| guard.is_held()));
}

/// The milliseconds until the server ends what was taken, and from when on.
async fn rest(server: &RedisServer, kind: &str) -> (Instant, u64) {
    let now = Instant::now();
    if kind != "permit" {
        let rest: i64 = server.query(&["PTTL", kind]).await;
        return (now, u64::try_from(rest).unwrap());
    }
    let (seconds, micros): (u64, u64) = server.query(&["TIME"]).await;
    let range = ["ZRANGE", "{permit}:timeout", "0", "0", "WITHSCORES"];
    let taken: Vec<(Vec<u8>, u64)> = server.query(&range).await;
    (now, taken[0].1 - seconds * 1000 - micros / 1000)
}

fn assert_in_time(kind: &str, died: Instant, (from, rest): (Instant, u64), got: Instant) {
    let (took, rest) = (got - from, Duration::from_millis(rest));
    println!("{kind}: free after {took:?}, {rest:?} were left");
    let at_death = rest + (from - died);
    assert!(at_death > LEASE / 2, "{kind}: {at_death:?}");
    // The server counts in milliseconds.
    assert!(took + Duration::from_millis(2) >= rest, "{kind}: too early");
    assert!(took < rest + SLACK, "{kind}: {took:?}");
}

/// A waiter of `RSpinLock` listens nowhere.
async fn until_waited_for(server: &RedisServer, all: bool) {
    for [kind, _] in KINDS.into_iter().filter(|[kind, _]| all || *kind != "spin") {
        lock_testkit::eventually("somebody waits for each", async || {
            server.channels_with(&format!("{{{kind}}}")).await > 0
        })
        .await;
    }
}

#[tokio::test]
async fn a_lock_of_a_redisson_that_died_is_free_after_its_lease_and_not_before() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    java.ask("t", "permits permit permit 1").await;
    let mut waiting = Vec::new();
    for [kind, other] in KINDS {
        let lease = if kind == "permit" { "6000" } else { "-1" };
        let take = format!("take {kind} {kind} 0 {lease}");
        let taken = java.ask(kind, &take).await;
        assert!(taken.starts_with("took"), "{kind}: {taken}");
        let request = lock(&ours, kind, other);
        waiting.push(tokio::spawn(async move {
            let guard = request.acquire().await.unwrap();
            (Instant::now(), guard)
        }));
    }
    until_waited_for(&server, true).await;
    java.process.kill();
    let died = Instant::now();
    let mut left = Vec::new();
    for [kind, _] in KINDS {
        left.push(rest(&server, kind).await);
    }
    for ((waiting, left), [kind, _]) in waiting.into_iter().zip(left).zip(KINDS) {
        let (got, guard) = waiting.await.unwrap();
        assert_in_time(kind, died, left, got);
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_of_ours_is_free_for_redisson_after_the_lease_of_a_client_that_died() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    java.ask("t", "permits permit permit 1").await;
    let mut worker = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    worker.send(&format!("connect {}?layout=redisson", server.url()));
    worker.wait_for("connected").await;
    for [kind, other] in KINDS {
        let option = match kind {
            "lock" | "spin" => "",
            "permit" => "permits=1/1",
            kind => kind,
        };
        worker.send(&format!("hold {kind} {kind} lease=3000 renew {option}"));
        worker.wait_for(&format!("held {kind}")).await;
        java.begin(kind, &format!("take {other} {kind} 30000 -1"));
    }
    until_waited_for(&server, false).await;
    worker.kill();
    let died = Instant::now();
    let mut left = Vec::new();
    for [kind, _] in KINDS {
        left.push(rest(&server, kind).await);
    }
    for (left, [kind, _]) in left.into_iter().zip(KINDS) {
        let taken = java.process.wait_within(LONG, &format!("{kind} ")).await;
        assert!(taken.text.starts_with("took"), "{kind}: {}", taken.text);
        assert_in_time(kind, died, left, taken.at);
    }
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

/// Here a place of ours, before that of a waiter in Java.
#[tokio::test]
async fn a_process_of_ours_that_died_in_the_queue_of_a_fair_lock_blocks_java_for_seconds() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, Duration::from_secs(30)).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    let held = ours.lock("k").fair().acquire().await.unwrap();
    let mut dying = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    dying.send(&format!("connect {}?layout=redisson", server.url()));
    dying.wait_for("connected").await;
    dying.send("hold 1 k fair wait=600000");
    let queued = async |length: usize| {
        lock_testkit::eventually("it is in the queue", async || {
            let now: usize = server.query(&["LLEN", "redisson_lock_queue:{k}"]).await;
            now == length
        })
        .await;
    };
    queued(1).await;
    java.begin("t", "take fair k 600000 -1");
    queued(2).await;
    dying.kill();
    held.release().await.unwrap();
    let freed = Instant::now();
    let taken = java.process.wait_within(LONG, "t ").await;
    assert!(taken.text.starts_with("took"), "{}", taken.text);
    let took = taken.at - freed;
    println!("Java has it {took:?} after the release");
    // The place lasts for 5 s. On a slow machine, Java has looked again, and seen a lease of 3 s.
    assert!(took < Duration::from_secs(5) + LEASE + SLACK, "{took:?}");
    let queue: usize = server.query(&["LLEN", "redisson_lock_queue:{k}"]).await;
    assert_eq!(queue, 0);
}

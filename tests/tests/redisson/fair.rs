//! `RFairLock`: the order of arrival, over both sides.

use std::time::{Duration, Instant};

use lock_testkit::{RedisServer, eventually};

use crate::{Java, client};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_order_of_arrival_holds_over_both_sides() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    let queued = async |length: usize| {
        eventually("it is in the queue", async || {
            let now: usize = server.query(&["LLEN", "redisson_lock_queue:{k}"]).await;
            now == length
        })
        .await;
    };
    let held = ours.lock("k").fair().acquire().await.unwrap();
    java.begin("t1", "take fair k 60000 -1");
    queued(1).await;
    let second = tokio::spawn(ours.lock("k").fair().acquire());
    queued(2).await;
    java.begin("t2", "take fair k 60000 -1");
    queued(3).await;
    let fourth = tokio::spawn(ours.lock("k").fair().acquire());
    queued(4).await;
    held.release().await.unwrap();
    assert!(java.answer("t1").await.starts_with("took"));
    assert!(!second.is_finished());
    assert_eq!(java.ask("t1", "give fair k").await, "gave");
    let second = second.await.unwrap().unwrap();
    assert!(!fourth.is_finished());
    second.release().await.unwrap();
    assert!(java.answer("t2").await.starts_with("took"));
    assert!(!fourth.is_finished());
    assert_eq!(java.ask("t2", "give fair k").await, "gave");
    fourth.await.unwrap().unwrap().release().await.unwrap();
    assert!(server.keys("*").await.is_empty());
}

/// Only the first waiter of a process asks again and again. The others depend on their message,
/// however long they wait.
#[tokio::test]
async fn whoever_waits_behind_the_first_still_hears_of_its_turn() {
    let server = RedisServer::start().await;
    let (ours, other) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let channels = async || {
        let all = server.channels().await;
        let of_places = |one: &&String| one.starts_with("redisson_lock__channel:{k}:");
        all.iter().filter(of_places).count()
    };
    let asked = async || {
        let ends: Vec<(Vec<u8>, f64)> = server
            .query(&[
                "ZRANGE",
                "redisson_lock_timeout:{k}",
                "0",
                "0",
                "WITHSCORES",
            ])
            .await;
        ends[0].1
    };
    let held = other.lock("k").fair().acquire().await.unwrap();
    // In this order.
    let mut waiting = Vec::new();
    for place in 1..=6 {
        waiting.push(tokio::spawn(ours.lock("k").fair().acquire()));
        eventually("it has its place", async || {
            let places: usize = server.query(&["LLEN", "redisson_lock_queue:{k}"]).await;
            places == place
        })
        .await;
    }
    eventually("they listen, and the holder no longer", async || {
        channels().await == 6
    })
    .await;
    let given_up = tokio::spawn(ours.lock("k").fair().acquire());
    eventually("so does the last one", async || channels().await == 7).await;
    // Channels are looked through each two seconds. Each look of the first moves its end.
    for _ in 0..6 {
        let before = asked().await;
        eventually("the first looks", async || asked().await > before).await;
    }
    assert_eq!(channels().await, 7);
    given_up.abort();
    eventually("who has left hears no more", async || channels().await == 6).await;
    let (mut released, mut fastest) = (Instant::now(), Duration::MAX);
    held.release().await.unwrap();
    for waiting in waiting {
        let guard = waiting.await.unwrap().unwrap();
        fastest = fastest.min(released.elapsed());
        let behind: Vec<String> = server
            .query(&["LRANGE", "redisson_lock_queue:{k}", "0", "-1"])
            .await;
        let heard = server.channels().await;
        for place in behind {
            let channel = format!("redisson_lock__channel:{{k}}:{place}");
            assert!(heard.contains(&channel), "{place} hears of no turn");
        }
        released = Instant::now();
        guard.release().await.unwrap();
    }
    // Looks are a second apart. One turn that is not that of a look is proof enough.
    assert!(fastest < Duration::from_millis(500), "{fastest:?}");
    eventually("nobody listens", async || channels().await == 0).await;
    assert!(server.keys("*").await.is_empty());
}

/// A lock whose holder has died is free without a message, and the first waiter of a process looks
/// for all of it. It stands behind another one if that was quicker, or its own place was dropped.
#[tokio::test]
async fn a_lock_that_is_free_without_a_word_goes_to_the_first_place_whoever_looks() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let queue = "redisson_lock_queue:{k}";
    let dead = "00000000-0000-4000-8000-000000000000:1";
    server.command(&["HSET", "k", dead, "1"]).await;
    server.command(&["PEXPIRE", "k", "60000"]).await;
    let mut waiting = Vec::new();
    for place in 1..=2 {
        waiting.push(tokio::spawn(ours.lock("k").fair().acquire()));
        eventually("it has its place", async || {
            let places: usize = server.query(&["LLEN", queue]).await;
            places == place
        })
        .await;
    }
    let moved = ["LMOVE", queue, queue, "LEFT", "RIGHT"];
    server.command(&moved).await;
    server.command(&["DEL", "k"]).await;
    for waiting in waiting.into_iter().rev() {
        let guard = tokio::time::timeout(LEASE, waiting).await;
        guard.unwrap().unwrap().unwrap().release().await.unwrap();
    }
    assert!(server.keys("*").await.is_empty());
}

/// Ten seconds of silence cost a place. Those of an earlier turn are no part of them.
#[tokio::test]
async fn the_silence_before_a_turn_does_not_count_after_it() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let (queue, ends) = ("redisson_lock_queue:{k}", "redisson_lock_timeout:{k}");
    let silent = "00000000-0000-4000-8000-000000000000:1";
    let stands = async || {
        server.command(&["RPUSH", queue, silent]).await;
        server
            .command(&["ZADD", ends, "9999999999999", silent])
            .await;
    };
    let fair_try = async || ours.lock("k").fair().try_acquire().await.unwrap();
    stands().await;
    assert!(fair_try().await.is_none(), "another one is first");
    server.command(&["DEL", queue, ends]).await;
    let guard = fair_try().await.unwrap();
    guard.release().await.unwrap();
    // Longer than a place may be silent.
    tokio::time::sleep(Duration::from_secs(9)).await;
    stands().await;
    assert!(fair_try().await.is_none(), "it has just come");
    let places: usize = server.query(&["LLEN", queue]).await;
    assert_eq!(places, 1);
}

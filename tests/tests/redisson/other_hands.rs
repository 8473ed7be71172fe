//! What others do to the same keys: clocks, watchdogs, rights, full servers, hashes of
//! applications.

use std::time::Duration;

use lock_runtime::{KeyKind, LockClient, LockError, StoreErrorKind};
use lock_testkit::{RedisServer, eventually};
use redis::Value;

use crate::client;

const LEASE: Duration = Duration::from_secs(30);
const HOLDER: &str = "0a1b2c3d-0000-4000-8000-000000000001:34";

fn conflict(error: &LockError) -> KeyKind {
    match error {
        LockError::KeyConflict { found, .. } => *found,
        other => panic!("{other}"),
    }
}

fn assert_denied(error: &LockError, right: &str) {
    assert!(
        matches!(error, LockError::Unavailable { source, .. }
            if source.kind() == StoreErrorKind::Denied),
        "{right}: {error}"
    );
}

#[tokio::test]
async fn a_reader_has_no_longer_lease_than_javas_watchdog_leaves_it() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let long = LEASE + Duration::from_millis(1);
    let lock = ours.rw_lock("rw");
    for request in [
        lock.read().lease(long),
        lock.write().lease(long),
        lock.read().hold_at_least(long),
    ] {
        let error = request.acquire().await.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert!(error.to_string().contains("lockWatchdogTimeout"), "{error}");
    }
    let reader = lock.read().lease(LEASE).acquire().await.unwrap();
    let error = reader.extend(long).await.unwrap_err();
    assert!(matches!(error, LockError::Config { .. }), "{error}");
    reader.extend(LEASE).await.unwrap();
    reader.release().await.unwrap();
    let lock = ours.lock("k").lease(2 * LEASE).acquire().await.unwrap();
    lock.release().await.unwrap();
}

#[tokio::test]
async fn a_permit_of_ours_outlives_a_clock_that_is_a_second_ahead() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    server.command(&["SET", "s", "1"]).await;
    let permit = ours.semaphore("s", 1).permit();
    let permit = permit.lease(LEASE).acquire().await.unwrap();
    for _ in 0..2 {
        // By a clock that is a second ahead, it must not end before we think that it does.
        let trusted = permit.remaining();
        let time: (i64, i64) = server.query(&["TIME"]).await;
        let ends: Vec<(Vec<u8>, f64)> = server
            .query(&["ZRANGE", "{s}:timeout", "0", "0", "WITHSCORES"])
            .await;
        let lasts = ends[0].1 - (time.0 * 1000 + time.1 / 1000 + 1000) as f64;
        assert!(lasts >= trusted.as_millis() as f64 - 1000.0, "{lasts}");
        assert!(lasts > LEASE.as_millis() as f64 - 1000.0, "{lasts}");
        permit.extend(LEASE).await.unwrap();
    }
    permit.release().await.unwrap();
}

#[tokio::test]
async fn a_hash_of_an_application_is_no_lock_though_it_has_a_mode() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let native = format!("{}?namespace=", server.url());
    let native = LockClient::builder().url(native).connect().await.unwrap();
    server
        .command(&["HSET", "app", "mode", "read", "views", "3000000000"])
        .await;
    // Neither is one that counts more holds than anybody has.
    server
        .command(&["HSET", "many", "mode", "read", HOLDER, "3000000000"])
        .await;
    let reading = ours.rw_lock("app").read();
    let error = reading.acquire().await.unwrap_err();
    assert_eq!(conflict(&error), KeyKind::NoLock);
    assert!(ours.force_release("app").await.is_err());
    assert!(ours.inspect("app").await.is_err());
    let error = native.lock("app").acquire().await.unwrap_err();
    assert_eq!(conflict(&error), KeyKind::NoLock);
    let fields: i64 = server.query(&["HLEN", "app"]).await;
    let ttl: i64 = server.query(&["PTTL", "app"]).await;
    assert_eq!((fields, ttl), (2, -1));
    // Each of these looks at a thousand of them, and no more.
    let error = native.lock("many").acquire().await.unwrap_err();
    assert!(error.to_string().contains("RReadWriteLock"), "{error}");
    assert_eq!(ours.inspect("many").await.unwrap().holders, 0);
    assert!(ours.force_release("many").await.unwrap());
}

#[tokio::test]
async fn a_full_server_renews_keeps_and_releases() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    server.command(&["SET", "s", "1"]).await;
    let keep = Duration::from_secs(20);
    let permit = ours.semaphore("s", 1).permit().acquire().await.unwrap();
    let lock = ours.lock("k").hold_at_least(keep).acquire().await.unwrap();
    let writer = ours.rw_lock("rw").write().hold_at_least(keep);
    let writer = writer.acquire().await.unwrap();
    server
        .command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"])
        .await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    for guard in [permit, lock, writer] {
        guard.extend(LEASE).await.unwrap();
        guard.release().await.unwrap();
    }
    let taken: i64 = server.query(&["ZCARD", "{s}:timeout"]).await;
    let kept: (i64, i64) = (
        server.query(&["PTTL", "k"]).await,
        server.query(&["PTTL", "rw"]).await,
    );
    assert_eq!(taken, 0);
    assert!(kept.0 > 0 && kept.1 > 0, "{kept:?}");
}

#[tokio::test]
async fn a_right_that_was_taken_away_is_denied_and_no_loss() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let lock = ours.lock("k").acquire().await.unwrap();
    server
        .command(&["ACL", "SETUSER", "default", "-hexists", "-hdel"])
        .await;
    for error in [
        lock.extend(LEASE).await.unwrap_err(),
        lock.release().await.unwrap_err(),
    ] {
        assert_denied(&error, "hexists, hdel");
        assert!(error.to_string().contains("denied access"), "{error}");
    }
    server
        .command(&["ACL", "SETUSER", "default", "+hexists", "+hdel"])
        .await;
}

#[tokio::test]
async fn who_may_not_read_a_queue_takes_no_lock_before_those_in_it() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let (queue, timeouts) = ("redisson_lock_queue:{k}", "redisson_lock_timeout:{k}");
    server.command(&["RPUSH", queue, HOLDER]).await;
    server
        .command(&["ZADD", timeouts, "9000000000000", HOLDER])
        .await;
    let take = || ours.lock("k").fair().wait(Duration::ZERO).acquire();
    let busy = take().await.unwrap_err();
    assert!(matches!(busy, LockError::Busy { .. }), "{busy}");
    for right in ["lindex", "zscore", "llen"] {
        let (taken, given) = (format!("-{right}"), format!("+{right}"));
        server.reset_stats().await;
        server.command(&["ACL", "SETUSER", "default", &taken]).await;
        let (took, found) = (take().await.map(drop), ours.inspect("k").await);
        server.command(&["ACL", "SETUSER", "default", &given]).await;
        // An error alone does not say so: the undo of a take would have removed the hold by now.
        assert_eq!(server.command_calls("hset").await, 0, "{right}");
        let Err(error) = took else {
            panic!("{right}: it has the lock");
        };
        assert_denied(&error, right);
        // Nor does it say that nobody waits.
        match found {
            Ok(found) => assert_eq!(found.waiting, 1, "{right}"),
            Err(denied) => assert_denied(&denied, right),
        }
        assert_eq!(server.keys("*").await.len(), 2, "{right}");
    }
}

/// A place that stays behind costs the others the time until it is found dead.
#[tokio::test]
async fn who_may_not_leave_a_queue_leaves_it_with_the_right() {
    let server = RedisServer::start().await;
    let (ours, other) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let (queue, timeouts) = ("redisson_lock_queue:{k}", "redisson_lock_timeout:{k}");
    let places = async || {
        let listed: usize = server.query(&["LLEN", queue]).await;
        let timed: usize = server.query(&["ZCARD", timeouts]).await;
        (listed, timed)
    };
    let refused = async || {
        let log: Vec<Value> = server.query(&["ACL", "LOG"]).await;
        !log.is_empty()
    };
    let held = other.lock("k").fair().acquire().await.unwrap();
    for (right, left) in [("lrem", (1, 1)), ("lindex", (1, 1)), ("zrem", (0, 1))] {
        let waiting = tokio::spawn(ours.lock("k").fair().acquire());
        eventually("it has a place", async || places().await == (1, 1)).await;
        let (taken, given) = (format!("-{right}"), format!("+{right}"));
        server.command(&["ACL", "LOG", "RESET"]).await;
        server.command(&["ACL", "SETUSER", "default", &taken]).await;
        waiting.abort();
        eventually("it was refused", refused).await;
        eventually("what it may leave", async || places().await == left).await;
        server.command(&["ACL", "SETUSER", "default", &given]).await;
        eventually("it has left", async || places().await == (0, 0)).await;
    }
    held.release().await.unwrap();
}

/// The hold that a refused take has written ends nevertheless.
#[tokio::test]
async fn who_may_not_leave_a_queue_keeps_no_lock() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    server
        .command(&["ACL", "SETUSER", "default", "-lrem"])
        .await;
    let take = ours.lock("k").fair().wait(Duration::ZERO).acquire();
    assert_denied(&take.await.map(drop).unwrap_err(), "lrem");
    eventually("the lock is free", async || {
        let exists: i64 = server.query(&["EXISTS", "k"]).await;
        exists == 0
    })
    .await;
}

#[tokio::test]
async fn our_own_layout_names_a_lock_of_redisson_within_its_own_rights() {
    let server = RedisServer::start().await;
    server.command(&["HSET", "shop:k", HOLDER, "1"]).await;
    server
        .command(&[
            "ACL", "SETUSER", "app", "on", ">p", "+@all", "~shop:*", "&shop:*",
        ])
        .await;
    let url = format!("redis://app:p@{}?namespace=shop", server.addr());
    let native = LockClient::builder().url(url).connect().await.unwrap();
    let error = native.lock("k").acquire().await.unwrap_err();
    assert!(error.to_string().contains("`RLock`"), "{error}");
}

#[tokio::test]
async fn no_permit_is_lost_when_an_ended_one_is_taken_again_behind_a_hundred_others() {
    const SCRIPT: &str = concat!(
        include_str!("../../../lock-runtime/stores/redis/src/commands/denied.lua"),
        include_str!("../../../lock-runtime/stores/redis/src/layouts/redisson/lib.lua"),
        include_str!("../../../lock-runtime/stores/redis/src/layouts/redisson/permits.lua")
    );
    let server = RedisServer::start().await;
    server.command(&["SET", "s", "0"]).await;
    for ended in 0..121 {
        let (score, id) = (ended.to_string(), format!("id{ended}"));
        server.command(&["ZADD", "taken", &score, &id]).await;
    }
    let reply: Vec<i64> = server
        .query(&[
            "EVAL", SCRIPT, "2", "s", "taken", "1000", "channel", "id120",
        ])
        .await;
    assert_eq!(reply, [1, 121]);
    let free: i64 = server.query(&["GET", "s"]).await;
    let taken: i64 = server.query(&["ZCARD", "taken"]).await;
    assert_eq!(free + taken, 121);
}

//! Replies that don't come, connections that freeze or break.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, StoreErrorKind};
use lock_tests::{Proxy, RedisServer, eventually};

use crate::{client, unavailable, until_waiting};

async fn behind_proxy() -> (RedisServer, Proxy, LockClient) {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = client(&proxy.url()).await;
    (server, proxy, client)
}

#[tokio::test]
async fn an_acquire_whose_reply_is_dropped_leaves_no_lock_behind() {
    for fenced in [false, true] {
        let (server, proxy, client) = behind_proxy().await;
        let mut log = server.requests().await;
        proxy.drop_replies(true);
        let request = client.lock("k");
        let request = if fenced { request.fenced() } else { request };
        assert_eq!(
            unavailable(request.try_acquire().await),
            StoreErrorKind::Timeout
        );
        let executed = log.take().await;
        assert!(
            executed.iter().any(|one| one.text.contains("lock:k")),
            "the server did execute it: {executed:?}"
        );
        proxy.drop_replies(false);
        let undone = Instant::now();
        eventually("the lock is undone", async || {
            server.keys("lock:k").await.is_empty()
        })
        .await;
        assert!(
            undone.elapsed() < Duration::from_secs(15),
            "not by its lease of 30 s"
        );
    }
}

#[tokio::test]
async fn a_connection_cut_between_request_and_reply_gives_the_lock_all_the_same() {
    for (command, fenced) in [("set", false), ("evalsha", true)] {
        let (server, proxy, client) = behind_proxy().await;
        let request = || {
            if fenced {
                client.lock("k").fenced()
            } else {
                client.lock("k")
            }
        };
        request().acquire().await.unwrap().release().await.unwrap();
        proxy.cut_after_next(command);
        let guard = request().acquire().await.unwrap();
        assert_eq!(proxy.connections(), 2);
        guard.release().await.unwrap();
        eventually("nothing is left", async || {
            server.keys("lock:k").await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_is_repeated_until_it_is_known() {
    let (server, proxy, client) = behind_proxy().await;
    let guard = client.lock("k").acquire().await.unwrap();
    proxy.freeze();
    assert_eq!(unavailable(guard.release().await), StoreErrorKind::Timeout);
    assert_eq!(server.keys("lock:k").await, ["lock:k"]);
    proxy.thaw();
    let thawed = Instant::now();
    eventually("it is released", async || {
        server.keys("lock:k").await.is_empty()
    })
    .await;
    assert!(
        thawed.elapsed() < Duration::from_secs(15),
        "not by its lease of 30 s"
    );
    assert_eq!(client.health().await.unwrap().release_failures, 1);
}

#[tokio::test]
async fn a_body_keeps_its_result_when_the_release_fails() {
    let (_server, proxy, client) = behind_proxy().await;
    let result = client.lock("k").run(async {
        proxy.freeze();
        42
    });
    assert_eq!(result.await.unwrap(), 42);
}

#[tokio::test]
async fn a_connection_that_stops_answering_is_replaced() {
    let (_server, proxy, client) = behind_proxy().await;
    let guard = client.lock("k").acquire().await.unwrap();
    proxy.freeze();
    for _ in 0..2 {
        unavailable(client.lock("other").try_acquire().await);
    }
    eventually("a new connection is made", async || proxy.connections() > 1).await;
    proxy.thaw();
    guard.release().await.unwrap();
    assert!(client.lock("other").acquire().await.unwrap().is_held());
}

#[tokio::test]
async fn a_lost_grant_message_costs_time_and_not_the_lock() {
    let (server, proxy, waiter) = behind_proxy().await;
    let holder = client(&server.url()).await;
    for round in 0..3 {
        let held = holder.lock("k").acquire().await.unwrap();
        let waiting = tokio::spawn(waiter.lock("k").acquire());
        until_waiting(&holder, "k", 1).await;
        match round {
            0 => proxy.cut(),
            1 => _ = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await,
            // The message itself is lost, and the connection stays.
            _ => proxy.drop_replies(true),
        }
        held.release().await.unwrap();
        if round == 2 {
            eventually("the message is gone", async || {
                !server.keys("lock:k").await.is_empty()
            })
            .await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            proxy.drop_replies(false);
        }
        waiting.await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_partition_loses_the_hold_before_the_next_one_gets_it() {
    let (server, proxy, cut_off) = behind_proxy().await;
    let other = client(&server.url()).await;
    let lease = Duration::from_secs(1);
    let guard = cut_off
        .lock("k")
        .lease(lease)
        .renew(true)
        .acquire()
        .await
        .unwrap();
    proxy.freeze();
    let waiting = tokio::spawn(async move {
        other
            .lock("k")
            .acquire()
            .await
            .map(|guard| (guard, Instant::now()))
    });
    guard.lost().await;
    let lost = Instant::now();
    let (_next, granted) = waiting.await.unwrap().unwrap();
    assert!(lost < granted, "lost {:?} after the grant", lost - granted);
}

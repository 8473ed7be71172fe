//! Commands of one hold that overtake each other's replies, and replies that never come.

use std::time::Duration;

use lock_runtime::{Guard, LockClient};
use lock_testkit::{Proxy, RedisServer, eventually, patient_connection};

use crate::KEY;

/// How long after the server has carried out a command its reply comes.
const LATE: Duration = Duration::from_secs(1);

/// A client behind a proxy, whose holds are renewed every two seconds.
async fn behind(proxy: &Proxy) -> LockClient {
    let url = format!("redis://{}/?layout=timestamp&skew=0ms", proxy.addr());
    let builder = LockClient::builder().url(url);
    let builder = builder.lease(Duration::from_secs(6));
    let builder = builder.command_timeout(Duration::from_secs(5));
    builder.connect().await.unwrap()
}

async fn get(server: &RedisServer) -> Option<String> {
    let mut redis = patient_connection(&server.url()).await;
    let get = redis::cmd("GET").arg(KEY).to_owned();
    get.query_async(&mut redis).await.unwrap()
}

/// Waits until the server has another value.
async fn changed(server: &RedisServer, before: &str) {
    eventually("it is renewed", async || {
        get(server).await.is_some_and(|value| value != before)
    })
    .await;
}

/// A hold whose renewal was carried out, and whose reply is still under way.
async fn in_renewal(server: &RedisServer, proxy: &Proxy) -> Guard {
    let guard = behind(proxy).await.lock(KEY).acquire().await.unwrap();
    let before = get(server).await.unwrap();
    proxy.delay_replies(LATE);
    changed(server, &before).await;
    guard
}

#[tokio::test]
async fn a_release_beside_a_renewal_under_way_ends_the_lock() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let guard = in_renewal(&server, &proxy).await;
    guard.release().await.unwrap();
    assert_eq!(get(&server).await, None);

    proxy.delay_replies(Duration::ZERO);
    let guard = in_renewal(&server, &proxy).await;
    drop(guard);
    eventually("it is free", async || get(&server).await.is_none()).await;
}

#[tokio::test]
async fn an_extension_beside_a_renewal_under_way_keeps_the_lock() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let guard = in_renewal(&server, &proxy).await;
    guard.extend(Duration::from_secs(60)).await.unwrap();
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert_eq!(get(&server).await, None);
}

#[tokio::test]
async fn a_renewal_whose_reply_is_lost_is_followed_by_the_next() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let guard = behind(&proxy).await.lock(KEY).acquire().await.unwrap();
    let first = get(&server).await.unwrap();
    proxy.cut_after_next("EVALSHA");
    changed(&server, &first).await;
    let unheard = get(&server).await.unwrap();
    changed(&server, &unheard).await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert_eq!(get(&server).await, None);
}

#[tokio::test]
async fn an_acquire_that_is_dropped_before_its_reply_leaves_no_lock() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = behind(&proxy).await;
    proxy.delay_replies(LATE);
    let lock = client.lock(KEY).lease(Duration::from_secs(600));
    let acquire = tokio::spawn(lock.acquire());
    eventually("it is taken", async || get(&server).await.is_some()).await;
    acquire.abort();
    // On a slow machine, the reply may have come, and then this has the guard.
    drop(acquire);
    eventually("it is free", async || get(&server).await.is_none()).await;
}

#[tokio::test]
async fn an_acquire_whose_reply_is_lost_is_repeated_and_gets_the_lock() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = behind(&proxy).await;
    proxy.cut_after_next("EVALSHA");
    let lock = client.lock(KEY).lease(Duration::from_secs(600));
    let guard = lock.acquire().await.unwrap();
    assert!(get(&server).await.is_some());
    guard.release().await.unwrap();
    assert_eq!(get(&server).await, None);
}

#[tokio::test]
async fn another_client_of_ours_is_told_who_holds_it_and_can_revoke_it() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let (one, other) = (behind(&proxy).await, behind(&proxy).await);
    let guard = one.lock(KEY).acquire().await.unwrap();
    let error = other.lock(KEY).wait(Duration::from_millis(300)).acquire();
    let error = error.await.unwrap_err().to_string();
    assert!(!error.contains("does not name"), "{error}");
    assert!(
        error.contains(&format!(":{}", std::process::id())),
        "{error}"
    );
    let revoking = other.revoke(KEY, Duration::from_secs(10));
    let (revoked, ()) = tokio::join!(revoking, async {
        guard.lost().await;
        drop(guard);
    });
    assert!(revoked.unwrap().is_complete());
    eventually("it is free", async || get(&server).await.is_none()).await;
}

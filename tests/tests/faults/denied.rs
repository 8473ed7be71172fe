//! A server that refuses: each reason is its own clear error, and the body does not run.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_tests::{RedisServer, eventually};

use crate::{client, timed, unavailable};

/// Runs a body under the lock, which must not run, and gives the error.
async fn refused(client: &LockClient, wait: Duration) -> LockError {
    let mut ran = false;
    let result = client.lock("k").wait(wait).run(async { ran = true }).await;
    assert!(!ran);
    result.unwrap_err()
}

fn kind(error: &LockError) -> StoreErrorKind {
    match error {
        LockError::Unavailable { source, .. } => source.kind(),
        other => panic!("{other:?}"),
    }
}

const WAIT: Duration = Duration::from_millis(600);

#[tokio::test]
async fn out_of_memory_is_tried_again_within_the_wait_and_then_told() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let held = client
        .lock("held")
        .lease(Duration::from_secs(2))
        .renew(true)
        .acquire()
        .await
        .unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    for wait in [Duration::ZERO, WAIT] {
        let error = refused(&client, wait).await;
        assert_eq!(kind(&error), StoreErrorKind::OutOfMemory);
        assert!(error.to_string().contains("maxmemory"), "{error}");
    }
    let waiting = tokio::spawn(client.lock("k").acquire());
    // What is held can still be renewed and released.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(held.is_held());
    held.release().await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert!(waiting.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_hand_over_needs_no_free_memory() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let held = client.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(client.lock("k").fenced().acquire());
    crate::until_waiting(&client, "k", 1).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    held.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_replica_is_read_only() {
    let (master, replica) = (RedisServer::start().await, RedisServer::start().await);
    replica
        .command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()])
        .await;
    let client = client(&replica.url()).await;
    for wait in [Duration::ZERO, WAIT] {
        assert_eq!(
            kind(&refused(&client, wait).await),
            StoreErrorKind::ReadOnly
        );
    }
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    assert!(client.lock("k").acquire().await.unwrap().is_held());
}

#[tokio::test]
async fn a_wrong_password_fails_at_once() {
    let server = RedisServer::builder().password("right").start().await;
    for url in [
        format!("redis://:wrong@127.0.0.1:{}", server.port()),
        format!("redis://127.0.0.1:{}", server.port()),
    ] {
        let (result, elapsed) = timed(LockClient::builder().url(&url).connect()).await;
        if let Ok(client) = &result {
            // Without any password the server lets us connect and refuses the commands.
            assert_eq!(
                kind(&refused(client, Duration::from_secs(20)).await),
                StoreErrorKind::Denied
            );
        } else {
            assert_eq!(unavailable(result), StoreErrorKind::Denied);
            let lazy = LockClient::builder().url(&url).connect_lazy().unwrap();
            let (error, elapsed) = timed(refused(&lazy, Duration::from_secs(20))).await;
            assert_eq!(kind(&error), StoreErrorKind::Denied);
            assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
        }
        assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    }
}

#[tokio::test]
async fn a_missing_permission_fails_at_once() {
    let server = RedisServer::start().await;
    let url = |user: &str| format!("redis://{user}:word@127.0.0.1:{}", server.port());
    let user = async |name: &str, rules: &[&str]| {
        let words = ["ACL", "SETUSER", name, "on", ">word"]
            .iter()
            .chain(rules)
            .copied()
            .collect::<Vec<_>>();
        server.command(&words).await;
        client(&url(name)).await
    };
    let no_set = user("no-set", &["~lock:*", "&lock:*", "+@all", "-set"]).await;
    let no_key = user("no-key", &["~other:*", "&lock:*", "+@all"]).await;
    let no_script = user("no-script", &["~lock:*", "&lock:*", "+@all", "-@scripting"]).await;
    for client in [no_set, no_key] {
        let (error, elapsed) = timed(refused(&client, Duration::from_secs(20))).await;
        assert_eq!(kind(&error), StoreErrorKind::Denied, "{error}");
        assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    }
    let guard = no_script
        .lock("k")
        .lease(Duration::from_millis(300))
        .acquire()
        .await
        .unwrap();
    assert_eq!(unavailable(guard.release().await), StoreErrorKind::Denied);
    eventually("its lease ends", async || {
        server.keys("lock:k").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_user_with_the_documented_rights_needs_no_others() {
    let server = RedisServer::start().await;
    let commands = "+hello +auth +select +ping +subscribe +set +get +del +pexpire +pttl +evalsha +eval +publish +time \
                    +zadd +zrem +zrange +zscore +zcard +zpopmin";
    let rules = ["ACL", "SETUSER", "app", "on", ">word", "~lock:*", "&lock:*"];
    server
        .command(
            &rules
                .into_iter()
                .chain(commands.split_whitespace())
                .collect::<Vec<_>>(),
        )
        .await;
    let client = client(&format!("redis://app:word@127.0.0.1:{}", server.port())).await;
    let held = client.lock("k").fenced().acquire().await.unwrap();
    held.extend(Duration::from_secs(60)).await.unwrap();
    held.scope(client.lock("k").fenced().run(async {}))
        .await
        .unwrap();
    let waiting = tokio::spawn(client.lock("k").fenced().acquire());
    crate::until_waiting(&client, "k", 1).await;
    held.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(client.force_release("k").await.unwrap());
    drop(next);
    let rate = lock_runtime::Rate::per_second(1);
    client.rate_limiter("k", rate).acquire().await.unwrap();
    client.health().await.unwrap();
    let denied: Vec<Vec<redis::Value>> = server.query(&["ACL", "LOG"]).await;
    assert!(denied.is_empty(), "{denied:?}");
}

#[tokio::test]
async fn a_key_of_another_type_is_a_conflict() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    server.command(&["HSET", "lock:k", "field", "1"]).await;
    let conflict =
        |error: LockError| assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
    conflict(refused(&client, Duration::from_secs(20)).await);
    conflict(client.lock("k").fenced().acquire().await.unwrap_err());
    conflict(client.lock("k").fair().acquire().await.unwrap_err());
    conflict(client.inspect("k").await.unwrap_err());
    conflict(client.force_release("k").await.unwrap_err());
    server
        .command(&["SET", "lock:%fence:{lock:f}", "not a number"])
        .await;
    conflict(client.lock("f").fenced().acquire().await.unwrap_err());
    server
        .command(&["SET", "lock:%queue:{lock:q}", "no queue"])
        .await;
    conflict(client.lock("q").fair().acquire().await.unwrap_err());
    // A helper key of another type does not keep a lock from being released.
    client
        .lock("q")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert_eq!(server.keys("lock:q").await, Vec::<String>::new());
    assert_eq!(server.keys("lock:f").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_key_that_is_denied_does_not_make_another_one_unavailable() {
    let server = RedisServer::start().await;
    let holder = client(&server.url()).await;
    let _held = holder.lock("k").acquire().await.unwrap();
    let rules = [
        "ACL", "SETUSER", "app", "on", ">word", "~lock:k", "~lock:%*", "&*", "+@all",
    ];
    server.command(&rules).await;
    let client = client(&format!("redis://app:word@127.0.0.1:{}", server.port())).await;
    let busy = tokio::spawn(client.lock("k").wait(Duration::from_millis(1150)).acquire());
    while !busy.is_finished() {
        let denied = client.lock("denied").try_acquire().await;
        assert_eq!(unavailable(denied), StoreErrorKind::Denied);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let busy = busy.await.unwrap();
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
}

#[tokio::test]
async fn a_hold_that_was_extended_is_released_as_soon_as_the_server_takes_writes_again() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let lease = Duration::from_millis(300);
    let guard = client.lock("k").lease(lease).acquire().await.unwrap();
    guard.extend(Duration::from_secs(60)).await.unwrap();
    let writes = async |replicas: &str| {
        let words = ["CONFIG", "SET", "min-replicas-to-write", replicas];
        server.command(&words).await;
    };
    writes("1").await;
    drop(guard);
    eventually("the release was refused", async || {
        client
            .health()
            .await
            .is_ok_and(|health| health.release_failures == 1)
    })
    .await;
    tokio::time::sleep(4 * lease).await;
    assert_eq!(server.keys("lock:k").await, ["lock:k"]);
    writes("0").await;
    lock_tests::eventually_within(
        Duration::from_secs(20),
        "it is released, not by its lease",
        async || server.keys("lock:k").await.is_empty(),
    )
    .await;
}

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

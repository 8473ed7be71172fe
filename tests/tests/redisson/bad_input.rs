//! Keys that hold something else, and layouts that are none.

use std::time::Duration;

use lock_runtime::{KeyKind, Layout, LockClient, LockError};
use lock_testkit::RedisServer;

use crate::client;

const LEASE: Duration = Duration::from_secs(30);
const FIELD: &str = "0a1b2c3d-0000-4000-8000-000000000001:34";

fn conflict(error: &LockError) -> KeyKind {
    match error {
        LockError::KeyConflict { found, .. } => *found,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_is_no_lock_of_redisson_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    server.command(&["SET", "string", "text"]).await;
    server.command(&["HSET", "hash", "name", "value"]).await;
    server
        .command(&["HSET", "hashes", FIELD, "1", "more", "2"])
        .await;
    server.command(&["RPUSH", "list", "x"]).await;
    for key in ["string", "hash", "hashes", "list"] {
        let error = ours.lock(key).acquire().await.unwrap_err();
        assert_eq!(conflict(&error), KeyKind::NoLock, "{key}");
        let error = ours.rw_lock(key).read().acquire().await.unwrap_err();
        assert_eq!(conflict(&error), KeyKind::NoLock, "{key}");
        let error = ours.semaphore(key, 1).permit().acquire().await.unwrap_err();
        assert_eq!(conflict(&error), KeyKind::NoLock, "{key}");
        assert!(ours.inspect(key).await.is_err(), "{key}");
        assert!(ours.force_release(key).await.is_err(), "{key}");
    }
    let mut keys = server.keys("*").await;
    keys.sort();
    assert_eq!(keys, ["hash", "hashes", "list", "string"]);
    server
        .command(&["SET", "redisson_lock_token:{k}", "seven"])
        .await;
    let error = ours.lock("k").fenced().acquire().await.unwrap_err();
    conflict(&error);
    assert!(ours.lock("k").acquire().await.is_ok());
}

#[tokio::test]
async fn a_lock_of_another_kind_says_what_it_is() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let lock = ours.lock("lock").acquire().await.unwrap();
    let reader = ours.rw_lock("rw").read().acquire().await.unwrap();
    for (error, what) in [
        (
            ours.rw_lock("lock").read().acquire().await.unwrap_err(),
            "`RLock`",
        ),
        (
            ours.semaphore("lock", 1)
                .permit()
                .acquire()
                .await
                .unwrap_err(),
            "`RLock`",
        ),
        (
            ours.lock("rw").acquire().await.unwrap_err(),
            "`RReadWriteLock`",
        ),
    ] {
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.to_string().contains("do not delete"), "{error}");
    }
    assert!(lock.is_held() && reader.is_held());
}

#[tokio::test]
async fn a_lock_of_redisson_met_by_our_own_layout_says_what_it_is() {
    let server = RedisServer::start().await;
    let url = format!("{}?namespace=", server.url());
    let native = LockClient::builder().url(url).connect().await.unwrap();
    server.command(&["HSET", "lock", FIELD, "1"]).await;
    server
        .command(&[
            "HSET",
            "rw",
            "mode",
            "write",
            &format!("{FIELD}:write"),
            "1",
        ])
        .await;
    server.command(&["HSET", "hash", "name", "value"]).await;
    for (key, what) in [("lock", "`RLock`"), ("rw", "`RReadWriteLock`")] {
        let error = native.lock(key).acquire().await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("Redisson") && text.contains(what), "{text}");
        assert!(
            text.contains("do not delete it") && !text.contains("or delete"),
            "{text}"
        );
        assert!(matches!(conflict(&error), KeyKind::OtherLayout(_)));
    }
    let error = native.lock("hash").acquire().await.unwrap_err();
    assert_eq!(conflict(&error), KeyKind::NoLock);
}

#[tokio::test]
async fn a_layout_that_is_none_or_elsewhere_is_a_config_error() {
    for (url, layout, why) in [
        ("redis://h?layout=redissson", None, "`redisson`"),
        ("redis://h?layout=curator", None, "not on this engine"),
        ("redis://h", Some(Layout::Curator), "not on this engine"),
        ("memory:", Some(Layout::Curator), "not on this engine"),
        (
            "postgres://u:p@h/d?layout=curator",
            None,
            "not on this engine",
        ),
        (
            "sqlite:///tmp/none?layout=curator",
            None,
            "not on this engine",
        ),
        ("etcd://h", Some(Layout::Curator), "not on this engine"),
        ("memory:", Some(Layout::Redisson), "not on this engine"),
        ("memory:?layout=redisson", None, "not on this engine"),
        (
            "postgres://u:p@h/d?layout=redisson",
            None,
            "not on this engine",
        ),
        (
            "sqlite:///tmp/none?layout=redisson",
            None,
            "not on this engine",
        ),
        ("etcd://h?layout=redisson", None, "not on this engine"),
        ("zookeeper://h?layout=redisson", None, "not on this engine"),
        (
            "zookeeper://h",
            Some(Layout::Redisson),
            "not on this engine",
        ),
    ] {
        let mut builder = LockClient::builder().url(url);
        if let Some(layout) = layout {
            builder = builder.layout(layout);
        }
        let error = builder.connect_lazy().unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{url}: {error}");
        assert!(error.to_string().contains(why), "{url}: {error}");
    }
    // A store of one's own would hold the lock where nobody else looks for it.
    let error = LockClient::builder()
        .store(|_| panic!("it is not opened"))
        .layout(Layout::Redisson)
        .connect_lazy()
        .unwrap_err();
    assert!(error.to_string().contains("not on this engine"), "{error}");
}

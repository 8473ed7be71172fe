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

/// What is said to all who ask for it.
async fn errors(client: &LockClient, key: &str) -> Vec<LockError> {
    let mut errors = Vec::new();
    for request in [
        client.lock(key),
        client.lock(key).fair(),
        client.rw_lock(key).read(),
        client.rw_lock(key).write(),
        client.semaphore(key, 1).permit(),
    ] {
        errors.push(request.acquire().await.unwrap_err());
    }
    errors.push(client.inspect(key).await.unwrap_err());
    errors.push(client.force_release(key).await.unwrap_err());
    errors
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
        for error in errors(&ours, key).await {
            match conflict(&error) {
                // One of its fields is a holder's.
                KeyKind::OtherLayout(what) if key == "hashes" => {
                    assert!(what.contains("Redisson in a form"), "{what}");
                }
                KeyKind::OtherLayout(what) if key == "string" => {
                    assert!(what.contains("`SET NX PX`"), "{what}");
                }
                found => assert_eq!(found, KeyKind::NoLock, "{key}"),
            }
        }
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
    server.command(&["HSET", "form", FIELD, "one"]).await;
    for (key, what) in [
        ("lock", "`RLock`"),
        ("rw", "`RReadWriteLock`"),
        ("form", "a form"),
    ] {
        for error in errors(&native, key).await {
            let text = error.to_string();
            assert!(text.contains("Redisson") && text.contains(what), "{text}");
            assert!(
                text.contains("do not delete it") && !text.contains("or delete"),
                "{text}"
            );
            assert!(matches!(conflict(&error), KeyKind::OtherLayout(_)));
        }
    }
    let error = native.lock("hash").acquire().await.unwrap_err();
    assert_eq!(conflict(&error), KeyKind::NoLock);
}

/// A number may be permits of Redisson, the time of a lock, or an owner's text: it can't be told.
#[tokio::test]
async fn our_own_layout_never_advises_to_delete_a_text_of_others() {
    let server = RedisServer::start().await;
    let rights = ["~*", "&*", "+@all", "-type"];
    let user = ["ACL", "SETUSER", "app", "on", ">p"];
    server.command(&[&user[..], &rights[..]].concat()).await;
    for user in ["", "app:p@"] {
        let url = format!("redis://{user}{}?namespace=", server.addr());
        let native = LockClient::builder().url(url).connect().await.unwrap();
        for (value, what) in [
            ("ADDED:2026-11-26T10:59:28.510Z@vm:x", "a lock of ShedLock"),
            ("1795690768510", "an exclusive lock"),
            ("5", "an exclusive lock"),
        ] {
            server.command(&["SET", "k", value]).await;
            let tried = native.lock("k").try_acquire().await.unwrap();
            assert!(tried.is_none(), "{value}");
            for request in [
                native.rw_lock("k").read(),
                native.rw_lock("k").write(),
                native.semaphore("k", 1).permit(),
            ] {
                let text = request.acquire().await.unwrap_err().to_string();
                assert!(text.contains(what), "{value}: {text}");
                assert!(text.contains("do not delete it"), "{value}: {text}");
                assert!(!text.contains("or delete"), "{value}: {text}");
            }
            assert_eq!(server.query::<String>(&["GET", "k"]).await, value);
        }
    }
    // A lock of Redisson that a user may not look at is not said to be none.
    server.command(&["HSET", "hash", FIELD, "1"]).await;
    let url = format!("redis://app:p@{}?namespace=", server.addr());
    let native = LockClient::builder().url(url).connect().await.unwrap();
    let error = native.rw_lock("hash").read().acquire().await.unwrap_err();
    assert_eq!(conflict(&error), KeyKind::Unknown);
}

/// A lock of another layout of ours is nothing to be deleted either.
#[tokio::test]
async fn a_lock_of_another_layout_says_what_it_is() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let url = |options: &str| format!("{}?{options}", server.url());
    let connect = async |options| LockClient::builder().url(url(options)).connect().await;
    let native = connect("namespace=").await.unwrap();
    let own = native.lock("own").acquire().await.unwrap();
    let shares = native.rw_lock("shares").read().acquire().await.unwrap();
    let job = "ADDED:2026-01-01T00:00:00.000Z@host";
    server.command(&["SET", "job", job]).await;
    for (key, what) in [
        ("own", "this library's own layout"),
        ("shares", "this library's own layout"),
        ("job", "ShedLock"),
    ] {
        for error in errors(&ours, key).await {
            let text = error.to_string();
            assert!(text.contains(what), "{key}: {text}");
            assert!(text.contains("do not delete it"), "{key}: {text}");
        }
    }
    assert!(own.is_held() && shares.is_held());
}

/// Neither is granted beside a holder, and nothing of it is changed.
#[tokio::test]
async fn a_version_of_redisson_that_stores_differently_is_a_conflict_or_holds_its_lock() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let second = &FIELD.replace(":34", ":35");
    let writer = &format!("{FIELD}:write");
    for (key, stored) in [
        // A count that is none.
        ("count", vec!["HSET", "count", FIELD, "{\"holds\":1}"]),
        // Two holders, or a word beside one.
        ("two", vec!["HSET", "two", FIELD, "1", second, "1"]),
        ("word", vec!["HSET", "word", FIELD, "1", "version", "9"]),
        // Another mode, or none, or a reader that counts otherwise.
        ("mode", vec!["HSET", "mode", "mode", "upgrade", FIELD, "1"]),
        ("none", vec!["HSET", "none", writer, "1", FIELD, "1"]),
        (
            "reader",
            vec!["HSET", "reader", "mode", "read", FIELD, "[1]"],
        ),
    ] {
        server.command(&stored).await;
        for error in errors(&ours, key).await {
            let text = error.to_string();
            assert!(
                text.contains("a lock of Redisson in a form"),
                "{key}: {text}"
            );
            assert!(text.contains("do not delete it"), "{key}: {text}");
        }
        let fields: Vec<String> = server.query(&["HGETALL", key]).await;
        assert_eq!(fields.len(), stored.len() - 2, "{key}");
    }
    // A lock that is a text, as in the first versions, and a semaphore of another number.
    for (key, value) in [("text", "{\"id\":\"0a1b\"}"), ("number", "1.5")] {
        server.command(&["SET", key, value]).await;
        for error in errors(&ours, key).await {
            assert!(
                error.to_string().contains("a text, as a lock"),
                "{key}: {error}"
            );
            assert!(
                error.to_string().contains("do not delete it"),
                "{key}: {error}"
            );
        }
    }
    // A queue or counter of another type.
    server
        .command(&["SET", "redisson_lock_queue:{q}", "x"])
        .await;
    let error = ours.lock("q").fair().acquire().await.unwrap_err();
    conflict(&error);
    // Permits whose ids are texts are others' permits.
    server.command(&["SET", "s", "0"]).await;
    let taken = ["ZADD", "{s}:timeout", "99999999999999", "0a1b2c3d"];
    server.command(&taken).await;
    let semaphore = ours.semaphore("s", 1).permit();
    assert!(semaphore.clone().try_acquire().await.unwrap().is_none());
    assert_eq!(ours.inspect("s").await.unwrap().permits_taken, Some(1));
    assert!(ours.force_release("s").await.unwrap());
    assert!(semaphore.try_acquire().await.unwrap().is_some());
}

/// Redisson 3.5 keeps a reader's time in a key without braces. Whoever counts otherwise may come in
/// meanwhile.
#[tokio::test]
async fn a_reader_of_another_version_reads_on_when_ours_has_ended() {
    let server = RedisServer::start().await;
    let ours = client(&server, LEASE).await;
    let older = format!("rw:{FIELD}:rwlock_timeout:1");
    server
        .command(&["HSET", "rw", "mode", "read", FIELD, "1"])
        .await;
    server.command(&["SET", &older, "1", "PX", "60000"]).await;
    let reader = ours.rw_lock("rw").read().acquire().await.unwrap();
    assert_eq!(ours.inspect("rw").await.unwrap().holders, 2);
    reader.release().await.unwrap();
    assert!(
        ours.rw_lock("rw")
            .write()
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    server.command(&["DEL", "rw", &older]).await;
    let reader = ours.rw_lock("rw").read().acquire().await.unwrap();
    server.command(&["HSET", "rw", FIELD, "[1]"]).await;
    reader.release().await.unwrap();
    let fields: i64 = server.query(&["HLEN", "rw"]).await;
    assert_eq!(fields, 2);
}

#[tokio::test]
async fn a_layout_that_is_none_or_elsewhere_is_a_config_error() {
    for (url, layout, why) in [
        ("redis://h?layout=redissson", None, "`redisson`"),
        ("redis://h?layout=curator", None, "has no layout"),
        ("redis://h", Some(Layout::Curator), "has no layout"),
        ("memory:", Some(Layout::Curator), "has no layout"),
        ("postgres://u:p@h/d?layout=curator", None, "has no layout"),
        ("sqlite:///tmp/none?layout=curator", None, "has no layout"),
        ("etcd://h", Some(Layout::Curator), "has no layout"),
        ("memory:", Some(Layout::Redisson), "has no layout"),
        ("memory:?layout=redisson", None, "has no layout"),
        ("postgres://u:p@h/d?layout=redisson", None, "has no layout"),
        ("sqlite:///tmp/none?layout=redisson", None, "has no layout"),
        ("etcd://h?layout=redisson", None, "has no layout"),
        ("zookeeper://h?layout=redisson", None, "has no layout"),
        ("zookeeper://h", Some(Layout::Redisson), "has no layout"),
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
    assert!(error.to_string().contains("has no layout"), "{error}");
}

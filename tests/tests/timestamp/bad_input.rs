//! Keys, options and servers that do not suit.

use lock_runtime::{LockClient, LockError};
use lock_testkit::{Log, RedisServer, patient_connection};

use crate::{KEY, client, url};

#[tokio::test]
async fn a_value_that_is_no_time_is_a_conflict_that_says_what_is_there() {
    let server = RedisServer::start().await;
    let mut redis = patient_connection(&server.url()).await;
    let owner = format!("{:032x}-1", 7);
    for (unit, command, says) in [
        ("ms", vec!["SET", "anything"], "a text that is no lock"),
        ("ms", vec!["SET", "42"], "a number"),
        (
            "ms",
            vec!["SET", "-1795690768510"],
            "a text that is no lock",
        ),
        ("ms", vec!["SET", ""], "a text that is no lock"),
        ("ms", vec!["SET", &*owner], "this library's own layout"),
        (
            "ms",
            vec!["SET", "ADDED:2026-11-26T10:59:28.510Z@vm:x"],
            "ShedLock",
        ),
        ("ms", vec!["HSET", "a:1", "1"], "Redisson"),
        ("ms", vec!["RPUSH", "x"], "no lock"),
        ("ms", vec!["SET", "1795690768"], "write `unit=s`"),
        ("s", vec!["SET", "1795690768510"], "write `unit=ms`"),
    ] {
        let client = client(&server, unit, "0ms").await;
        let mut set = redis::cmd(command[0]);
        set.arg(KEY).arg(&command[1..]);
        set.exec_async(&mut redis).await.unwrap();
        for error in [
            client.lock(KEY).acquire().await.map(drop).unwrap_err(),
            client.lock(KEY).try_acquire().await.map(drop).unwrap_err(),
        ] {
            assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
            assert!(error.to_string().contains(says), "{command:?}: {error}");
        }
        let error = client.force_release(KEY).await.unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
        let del = redis::cmd("DEL").arg(KEY).to_owned();
        let deleted: i64 = del.query_async(&mut redis).await.unwrap();
        assert_eq!(deleted, 1, "it stays as it was");
    }
}

#[tokio::test]
async fn what_the_layout_lacks_and_options_that_it_does_not_know_are_refused() {
    let server = RedisServer::start().await;
    let address = server.addr();
    let client = client(&server, "s", "1s").await;
    for refused in [
        client.lock(KEY).fenced().acquire().await.map(drop),
        client.lock(KEY).fair().acquire().await.map(drop),
        client.rw_lock(KEY).write().acquire().await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert!(
            error.to_string().contains("the layout `timestamp`"),
            "{error}"
        );
    }
    for (url, says) in [
        (url(&server, "us", "1s"), "`ms` or `s`"),
        (url(&server, "ms", "1"), "`skew`"),
        (url(&server, "ms", "1s") + "&replicas=1", "`replicas`"),
        (url(&server, "ms", "1s") + "&prefix=x", "`prefix`"),
        (format!("redis://{address}/?unit=ms"), "`unit`"),
        (
            format!("redis-quorum://{address},127.0.0.1:1,127.0.0.1:2/?layout=timestamp"),
            "no vote",
        ),
        (
            "sqlite:/tmp/x.db?layout=timestamp".to_owned(),
            "`timestamp`",
        ),
    ] {
        let error = LockClient::builder().url(&url).connect().await.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert!(error.to_string().contains(says), "{url}: {error}");
    }
}

#[tokio::test]
async fn what_the_recipe_can_not_promise_is_told_once_at_connect() {
    let server = RedisServer::start().await;
    // From now on the place of the warning is registered. While another test registers it, a new
    // subscriber would not hear of it.
    client(&server, "ms", "1s").await;
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let _default = tracing::subscriber::set_default(subscriber);
    let client = client(&server, "ms", "1s").await;
    client
        .lock(KEY)
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let text = log.text();
    let told: Vec<_> = text.lines().filter(|line| line.contains("WARN")).collect();
    let told: Vec<_> = told.iter().filter(|line| line.contains("GETSET")).collect();
    assert_eq!(told.len(), 1, "{text}");
    for part in ["clocks", "overwrites the winner's time", "names no owner"] {
        assert!(told[0].contains(part), "{text}");
    }
}

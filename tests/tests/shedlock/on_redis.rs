//! On Redis: `job-lock:<environment>:<name>`, with the value that ShedLock's providers write.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, LostReason};
use lock_testkit::{RedisServer, patient_connection};
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;

use crate::{Shared, client, jobs};

async fn ask<T: FromRedisValue>(redis: &mut MultiplexedConnection, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]).query_async(redis).await.unwrap()
}

async fn redis() -> (RedisServer, Shared) {
    redis_for("redis").await
}

async fn redis_for(provider: &str) -> (RedisServer, Shared) {
    let server = RedisServer::start().await;
    let shared = Shared {
        url: format!("redis://{}/?layout=shedlock", server.addr()),
        provider: vec![provider.to_owned(), server.port().to_string()],
    };
    (server, shared)
}

#[tokio::test]
async fn a_job_in_java_and_one_in_rust_skip_each_other() {
    let (_server, shared) = redis().await;
    jobs::each_skips_what_the_other_has(&shared, "ShedLock on ").await;
}

#[tokio::test]
async fn what_either_keeps_at_least_is_kept_from_the_other() {
    let (_server, shared) = redis().await;
    jobs::what_either_keeps_at_least_is_kept_from_the_other(&shared).await;
}

#[tokio::test]
async fn the_death_of_either_frees_its_lock_at_the_end_of_its_lease() {
    let (_server, shared) = redis().await;
    jobs::a_death_frees_it_at_the_end_of_its_lease(&shared).await;
}

#[tokio::test]
async fn either_extends_its_own_lock_and_no_other() {
    let (_server, shared) = redis().await;
    jobs::either_can_extend_its_own_and_only_that(&shared).await;
}

#[tokio::test]
async fn both_take_turns_and_never_at_once() {
    let (_server, shared) = redis().await;
    jobs::both_take_turns_and_never_at_once(&shared).await;
}

/// Without `safeUpdate`, which is ShedLock's default, a job that has lasted longer than its lease
/// ends the lock of whoever has it then. We learn of that at the next renewal.
#[tokio::test]
async fn without_safe_update_java_ends_a_lock_of_ours_and_we_learn_of_it() {
    let (_server, shared) = redis_for("redis-unsafe").await;
    let Some((mut java, _)) = shared.both().await else {
        return;
    };
    let builder = LockClient::builder().url(&shared.url);
    let client = builder.lease(Duration::from_millis(900)).connect();
    let client = client.await.unwrap();
    java.send("job report 500 0");
    java.wait_for("began").await;
    let ours = client.lock("report").acquire().await.unwrap();
    java.send("end");
    java.wait_for("ended").await;
    assert_eq!(client.inspect("report").await.unwrap().holder, None);
    ours.lost().await;
    let error = ours.release().await.unwrap_err();
    let is_gone = matches!(
        error,
        LockError::Lost {
            reason: LostReason::Gone,
            ..
        }
    );
    assert!(is_gone, "{error}");
}

#[tokio::test]
async fn keys_and_values_are_those_of_shedlock() {
    let server = RedisServer::start().await;
    let of = async |options: &str| {
        let url = format!("redis://{}/?layout=shedlock{options}", server.addr());
        client(&url).await
    };
    let mut redis = patient_connection(&server.url()).await;
    for (options, key) in [
        ("", "job-lock:default:report"),
        ("&namespace=prod", "job-lock:prod:report"),
        ("&prefix=jobs&namespace=prod", "jobs:prod:report"),
    ] {
        let client = of(options).await;
        let guard = client.lock("report").acquire().await.unwrap();
        let value: String = ask(&mut redis, &["GET", key]).await;
        let (time, who) = value.split_once('@').unwrap();
        assert!(
            time.starts_with("ADDED:20") && time.ends_with('Z'),
            "{value}"
        );
        let (host, token) = who.rsplit_once(':').unwrap();
        assert!(!host.is_empty() && token.len() > 32, "{value}");
        let ttl: i64 = ask(&mut redis, &["PTTL", key]).await;
        assert!((20_000..=30_000).contains(&ttl), "{ttl}");
        guard.release().await.unwrap();
        let keys: Vec<String> = ask(&mut redis, &["KEYS", "*"]).await;
        assert_eq!(keys, Vec::<String>::new());
    }
    // A view is another environment.
    let client = of("").await;
    let view = client.namespaced("prod");
    let guard = view.lock("report").acquire().await.unwrap();
    let keys: Vec<String> = ask(&mut redis, &["KEYS", "*"]).await;
    assert_eq!(keys, ["job-lock:prod:report"]);
    assert!(client.lock("report").try_acquire().await.unwrap().is_some());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_key_of_something_else_is_a_conflict_that_says_what_is_there() {
    let server = RedisServer::start().await;
    let url = format!("redis://{}/?layout=shedlock", server.addr());
    let client = client(&url).await;
    let mut redis = patient_connection(&server.url()).await;
    let owner = format!("{:032x}-1", 7);
    for (command, says) in [
        (vec!["HSET", "a:1", "1"], "a hash, as a lock of Redisson is"),
        (vec!["SET", "1795690768510"], "the layout `timestamp`"),
        (vec!["SET", &*owner], "this library's own layout"),
        (vec!["SET", "anything"], "a text that is no lock"),
        (vec!["RPUSH", "x"], "no lock"),
        (vec!["ZADD", "1", "x"], "a sorted set"),
    ] {
        let mut set = redis::cmd(command[0]);
        set.arg("job-lock:default:k").arg(&command[1..]);
        set.exec_async(&mut redis).await.unwrap();
        let error = client.lock("k").acquire().await.unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        let error = client.inspect("k").await.unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
        let error = client.force_release("k").await.unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
        let deleted: i64 = ask(&mut redis, &["DEL", "job-lock:default:k"]).await;
        assert_eq!(deleted, 1, "it stays as it was");
    }
}

#[tokio::test]
async fn what_the_layout_lacks_is_refused_with_the_reason() {
    let server = RedisServer::start().await;
    let address = server.addr();
    let client = client(&format!("redis://{address}/?layout=shedlock")).await;
    let second = Duration::from_secs(1);
    let refused = [
        client.rw_lock("k").read().acquire().await.map(drop),
        client.semaphore("k", 2).permit().acquire().await.map(drop),
        client.lock("k").fair().acquire().await.map(drop),
        client.lock("k").fenced().acquire().await.map(drop),
        client.latch("k").wait(second).await.map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert!(
            error.to_string().contains("the layout `shedlock`"),
            "{error}"
        );
    }
    for (url, says) in [
        (
            format!("redis-quorum://{address},127.0.0.1:1,127.0.0.1:2/?layout=shedlock"),
            "no vote",
        ),
        (
            format!("redis://{address}/?layout=shedlock&replicas=1"),
            "`replicas`",
        ),
        (
            format!("redis://{address}/?layout=shedlock&unit=s"),
            "`unit`",
        ),
        (format!("redis://{address}/?layout=lock4j"), "`shedlock`"),
        ("memory:?layout=shedlock".to_owned(), "`shedlock`"),
        (
            "etcd://127.0.0.1:1/?layout=shedlock".to_owned(),
            "`shedlock`",
        ),
    ] {
        let error = LockClient::builder().url(&url).connect().await.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert!(error.to_string().contains(says), "{url}: {error}");
    }
}

#[tokio::test]
async fn at_maxmemory_a_lock_is_renewed_kept_and_released_and_none_is_taken() {
    let (server, shared) = redis().await;
    let client = client(&shared.url).await;
    let renewed = client.lock("renewed").acquire().await.unwrap();
    let kept = client
        .lock("kept")
        .hold_at_least(Duration::from_secs(600))
        .acquire();
    let kept = kept.await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    renewed.extend(Duration::from_secs(600)).await.unwrap();
    kept.release().await.unwrap();
    let value: String = server.query(&["GET", "job-lock:default:kept"]).await;
    assert!(value.ends_with(":kept"), "{value}");
    for key in ["kept", "renewed"] {
        let key = format!("job-lock:default:{key}");
        let left: i64 = server.query(&["PTTL", &key]).await;
        assert!((500_000..=600_000).contains(&left), "{key}: {left}");
    }
    let error = client.lock("other").try_acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    renewed.release().await.unwrap();
    let left: i64 = server.query(&["EXISTS", "job-lock:default:renewed"]).await;
    assert_eq!(left, 0);
}

/// A reply of more than 16 MB would end the connection that all renewals share.
#[tokio::test]
async fn of_a_value_of_many_megabytes_only_the_ends_are_read() {
    let (server, shared) = redis().await;
    let client = client(&shared.url).await;
    let held = client.lock("held").acquire().await.unwrap();
    for (value, is_lock) in [
        ("anything", false),
        ("ADDED:2026-11-26T10:59:28.510Z@", true),
    ] {
        let key = "job-lock:default:k";
        server.command(&["SET", key, value]).await;
        let end = format!(":{:032x}-1", 7);
        server.command(&["SETRANGE", key, "17825792", &end]).await;
        let found = client.inspect("k").await;
        let taken = client
            .lock("k")
            .try_acquire()
            .await
            .map(|guard| guard.is_some());
        match is_lock {
            true => {
                let found = found.unwrap();
                assert!(
                    format!("{:?}", found.holder).contains("00000000"),
                    "{found:?}"
                );
                assert!(!taken.unwrap());
            }
            false => {
                for error in [found.map(drop).unwrap_err(), taken.map(drop).unwrap_err()] {
                    assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
                }
            }
        }
    }
    held.release().await.unwrap();
}

/// Who may use the keys and channels of the prefix can do all of this.
#[tokio::test]
async fn a_view_and_a_client_of_its_environment_can_revoke_each_others_locks() {
    let (server, _) = redis().await;
    let rule = [
        "ACL",
        "SETUSER",
        "jobs",
        "on",
        "nopass",
        "+@all",
        "resetchannels",
    ];
    let rule: Vec<&str> = rule
        .into_iter()
        .chain(["~job-lock:*", "&job-lock:*"])
        .collect();
    server.command(&rule).await;
    let of = async |options: &str| {
        let address = server.addr();
        client(&format!(
            "redis://jobs:x@{address}/?layout=shedlock{options}"
        ))
        .await
    };
    let (plain, prod) = (of("").await, of("&namespace=prod").await);
    let (view, by_name) = (plain.namespaced("prod"), of("&namespace=default").await);
    for (holder, other) in [
        (&view, &prod),
        (&prod, &view),
        (&plain, &by_name),
        (&by_name, &plain),
    ] {
        let guard = holder.lock("report").acquire().await.unwrap();
        let error = other
            .lock("report")
            .wait(Duration::from_millis(500))
            .acquire();
        let error = error.await.unwrap_err().to_string();
        let id = format!(":{}", std::process::id());
        assert!(error.contains(&id), "who holds it is not known: {error}");
        let revoking = other.revoke("report", Duration::from_secs(10));
        let (revoked, ()) = tokio::join!(revoking, async {
            let lost = tokio::time::timeout(Duration::from_secs(10), guard.lost());
            // It is asked to stop.
            lost.await.unwrap();
            drop(guard);
        });
        assert!(revoked.unwrap().is_complete());
    }
    // One environment does not hear the other.
    let _guard = plain.lock("report").acquire().await.unwrap();
    let revoked = prod
        .revoke("report", Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(revoked.released, 0);
}

//! What a quorum refuses, and with which words.

use std::fmt::Write as _;
use std::time::Duration;

use lock_runtime::{LockClient, LockError, Rate, StoreErrorKind};
use lock_testkit::{Log, RedisQuorum, RedisServer, documented_rights};

use crate::{client, config, unavailable};

#[tokio::test]
async fn the_same_server_twice_is_refused() {
    let quorum = RedisQuorum::start(2).await;
    let port = quorum.servers[0].port();
    let url = quorum.url().replace('?', &format!(",localhost:{port}?"));
    // On a busy machine a server that is not reached in time is not compared.
    let builder = LockClient::builder().url(&url);
    let patient = builder.connect_timeout(Duration::from_secs(30));
    let said = config(patient.connect().await);
    assert!(said.contains("are the same server"), "{said}");
    let (one, two) = (format!("127.0.0.1:{port}"), format!("localhost:{port}"));
    assert!(said.contains(&one) && said.contains(&two), "{said}");
    // A lazy client is told by its first request.
    let lazy = LockClient::builder().url(&url).connect_lazy().unwrap();
    lock_testkit::eventually("it is told", async || {
        let tried = lazy.lock("k").acquire().await;
        tried.is_err() && unavailable(tried) == StoreErrorKind::Misconfigured
    })
    .await;
    // The same address twice is refused without a server.
    let twice = "redis-quorum://h1,h2,h1";
    let said = config(LockClient::builder().url(twice).connect_lazy());
    assert!(
        said.contains("one server twice, as number 1 and 3"),
        "{said}"
    );
    assert!(!said.contains("h1"), "{said}");
}

#[tokio::test]
async fn a_quorum_of_one_is_refused() {
    let said = config(
        LockClient::builder()
            .url("redis-quorum://h1")
            .connect_lazy(),
    );
    assert!(
        said.contains("quorum of one") && said.contains("redis://host"),
        "{said}"
    );
}

#[tokio::test]
async fn a_server_of_another_kind_is_refused() {
    let quorum = RedisQuorum::start(2).await;
    let node = RedisServer::builder().arg("--cluster-enabled").arg("yes");
    let node = node.start().await;
    let url = quorum.url().replace('?', &format!(",{}?", node.addr()));
    let said = config(LockClient::builder().url(url).connect().await);
    assert!(
        said.contains("redis-cluster://") && said.contains(&node.addr().to_string()),
        "{said}"
    );
}

#[tokio::test]
async fn an_even_number_of_servers_is_a_warning() {
    let warned = |url: &str| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_writer(move || writer.clone())
            .finish();
        let client = tracing::subscriber::with_default(subscriber, || {
            LockClient::builder().url(url).connect_lazy()
        });
        drop(client.unwrap());
        log.text()
    };
    let four = warned("redis-quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,127.0.0.1:4");
    assert!(four.contains("even number of servers"), "{four}");
    let three = warned("redis-quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
    assert!(!three.contains("even"), "{three}");
}

#[tokio::test]
async fn what_a_quorum_can_not_do_soundly_is_refused_with_the_reason() {
    let quorum = RedisQuorum::start(3).await;
    let client = client(&quorum.url()).await;
    let mut said = vec![
        ("shares", config(client.semaphore("s", 3).permit().await)),
        (
            "shares",
            config(client.rw_lock("rw").read().acquire().await),
        ),
        (
            "shares",
            config(client.rw_lock("rw").write().acquire().await),
        ),
        ("fair", config(client.lock("k").fair().acquire().await)),
        ("rate", {
            let limiter = client.rate_limiter("r", Rate::per_second(1));
            config(limiter.acquire().await)
        }),
        ("rate", {
            let limiter = client.rate_limiter("r", Rate::per_second(1));
            config(limiter.try_acquire().await)
        }),
        ("latch", config(client.latch("l").count().await)),
        (
            "latch",
            config(client.latch("l").wait(Duration::ZERO).await),
        ),
    ];
    let mut all = String::new();
    for (what, one) in said.drain(..) {
        let reason = match what {
            "shares" => "three holders on three servers",
            "fair" => "another order of arrival",
            "rate" => "each server would count other calls",
            _ => "count down for other calls",
        };
        assert!(one.contains(reason), "{what}: {one}");
        write!(all, "{one}").unwrap();
    }
    assert!(
        all.contains("use one server, sentinels or a cluster"),
        "{all}"
    );
}

#[tokio::test]
async fn what_is_no_lock_on_a_majority_is_a_conflict_that_takes_nothing() {
    let quorum = RedisQuorum::start(3).await;
    let client = client(&quorum.url()).await;
    let [first, others @ ..] = &*quorum.servers else {
        panic!("three servers");
    };
    // A minority does not count.
    first.command(&["RPUSH", "lock:k", "v"]).await;
    first.command(&["SET", "lock:%fence:{lock:c}", "v"]).await;
    for key in ["k", "c"] {
        let guard = client.lock(key).fenced().acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    for server in others {
        server.command(&["RPUSH", "lock:k", "v"]).await;
        server.command(&["SET", "lock:%fence:{lock:c}", "v"]).await;
    }
    for (key, lock) in [
        ("k", client.lock("k")),
        ("k", client.lock("k").fenced()),
        ("c", client.lock("c").fenced()),
    ] {
        match lock.acquire().await {
            Err(error @ LockError::KeyConflict { .. }) => {
                assert_eq!(error.key().unwrap().as_str(), key);
            }
            other => panic!("{key}: {other:?}"),
        }
    }
    for server in &quorum.servers {
        let there: String = server.query(&["TYPE", "lock:k"]).await;
        assert_eq!(there, "list");
        let there: u32 = server.query(&["EXISTS", "lock:c"]).await;
        assert_eq!(there, 0);
    }
}

#[tokio::test]
async fn a_lease_that_outlives_the_absence_of_a_restarted_server_is_refused() {
    let quorum = RedisQuorum::start(3).await;
    let url = quorum.url_with("10s");
    // The client's own default is 30 s.
    let said = config(LockClient::builder().url(&url).connect().await);
    assert!(
        said.contains("30s") && said.contains("rejoin_after"),
        "{said}"
    );
    let short = LockClient::builder()
        .url(&url)
        .lease(Duration::from_secs(5));
    let client = short.connect_lazy().unwrap();
    let long = client.lock("k").lease(Duration::from_secs(11));
    let said = config(long.acquire().await);
    assert!(said.contains("11s"), "{said}");
    let kept = client.lock("k").hold_at_least(Duration::from_secs(12));
    let said = config(kept.acquire().await);
    assert!(
        said.contains("`hold_at_least` is 12s") && said.contains("rejoin_after"),
        "{said}"
    );
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let quorum = RedisQuorum::start(3).await;
    let uses = [
        "every client, rate limiters",
        "locks of one or several keys",
        "a quorum, besides",
    ];
    let rights = uses.into_iter().flat_map(documented_rights);
    let user = [
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">word",
        "~lock:*",
        "resetchannels",
        "&lock:*",
    ];
    let rule: Vec<&str> = user.into_iter().chain(rights).collect();
    for server in &quorum.servers {
        server.command(&rule).await;
    }
    let url = quorum.url().replace("://", "://app:word@");
    let (one, two) = (client(&url).await, client(&url).await);
    let guard = one.lock("k").fenced().acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("k").acquire());
    assert!(two.lock("k").try_acquire().await.unwrap().is_none());
    assert!(two.inspect("k").await.unwrap().holder.is_some());
    guard.extend(Duration::from_secs(20)).await.unwrap();
    guard.release().await.unwrap();
    drop(waits.await.unwrap().unwrap());
    one.force_release("k").await.unwrap();
    one.health().await.unwrap();
    for server in &quorum.servers {
        let denied: Vec<Vec<redis::Value>> = server.query(&["ACL", "LOG"]).await;
        assert!(denied.is_empty(), "{denied:?}");
        server.command(&["ACL", "SETUSER", "app", "-info"]).await;
    }
    // Without INFO the client can't tell its servers apart, and says so.
    let error = LockClient::builder().url(&url).connect().await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("info"), "{said}");
    assert_eq!(unavailable(Err::<(), _>(error)), StoreErrorKind::Denied);
}

//! A server that refuses: each reason is its own clear error, and the body does not run.

use std::time::Duration;

use lock_runtime::{Guard, LockClient, LockError, LockKey, LostReason, StoreErrorKind};
use lock_testkit::{RedisServer, eventually, patient_connection};

use crate::{client, timed, unavailable};

/// Runs a body under the lock, expects that it does not run, and returns the error.
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
async fn out_of_memory_is_tried_again_within_the_wait_and_then_reported() {
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
    // A hold can still be renewed and released.
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
async fn a_waiter_needs_no_free_memory_to_look_again() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let _held = client.lock("k").acquire().await.unwrap();
    // The waiter looks again after a second.
    let wait = Duration::from_millis(1600);
    let waiting = tokio::spawn(client.lock("k").wait(wait).acquire());
    crate::until_waiting(&client, "k", 1).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let told = waiting.await.unwrap();
    assert!(matches!(told, Err(LockError::Busy { .. })), "{told:?}");
}

/// The refusal of one key's write is no answer for the others of its hold.
#[tokio::test]
async fn a_server_that_refuses_writes_still_tells_that_a_hold_is_gone() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    for gone in ["lock:a", "lock:b"] {
        let several = client.multi_lock(["a", "b"]).lease(Duration::from_secs(6));
        let held = several.renew(true).acquire().await.unwrap();
        let replicas = |number| ["CONFIG", "SET", "min-replicas-to-write", number];
        let mut at_once = redis::pipe();
        at_once.atomic().cmd("DEL").arg(gone);
        at_once.cmd("CONFIG").arg(&replicas("1")[1..]);
        let mut raw = patient_connection(&server.url()).await;
        at_once.exec_async(&mut raw).await.unwrap();
        held.lost().await;
        server.command(&replicas("0")).await;
        let told = held.release().await.unwrap_err();
        let is_gone =
            matches!(&told, LockError::Lost { reason, .. } if *reason == LostReason::Gone);
        assert!(is_gone, "{told}");
    }
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
async fn a_wrong_password_is_told_with_the_user() {
    let server = RedisServer::start().await;
    server
        .command(&["ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all"])
        .await;
    let default = RedisServer::builder().password("right").start().await;
    for (url, user) in [
        (format!("redis://app:wrong@{}", server.addr()), "`app`"),
        (format!("redis://:wrong@{}", default.addr()), "`default`"),
    ] {
        let refused = LockClient::builder().url(&url).connect().await;
        let said = refused.as_ref().unwrap_err().to_string();
        assert!(said.contains("WRONGPASS") && said.contains(user), "{said}");
        assert_eq!(unavailable(refused), StoreErrorKind::Denied);
    }
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
            // Without a password the server accepts the connection and refuses the commands.
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

/// A client of an unrestricted user, and a holder in its way.
async fn allowed(server: &RedisServer, user: &str) -> (LockClient, Guard) {
    let rule = ["ACL", "SETUSER", user, "on", ">word", "~*", "&*", "+@all"];
    server.command(&rule).await;
    let allowed = client(&format!("redis://{user}:word@{}", server.addr())).await;
    let holder = client(&server.url()).await;
    let key = format!("taken-{user}");
    (allowed, holder.lock(key).acquire().await.unwrap())
}

#[tokio::test]
async fn a_right_that_is_taken_away_midway_is_told_and_is_never_busy() {
    let server = RedisServer::start().await;
    for (user, taken) in [
        ("all", &["-@all"][..]),
        ("scripts", &["-@scripting", "-set"]),
        ("keys", &["resetkeys"]),
        ("user", &[]),
    ] {
        let (client, held) = allowed(&server, user).await;
        let lease = Duration::from_secs(2);
        let own = client.lock("own").lease(lease).renew(true);
        let own = own.acquire().await.unwrap();
        let taken_lock = |wait| client.lock(held.key().clone()).wait(wait);
        let forever = tokio::spawn(client.lock(held.key().clone()).wait_forever().acquire());
        let long = tokio::spawn(taken_lock(Duration::from_secs(20)).acquire());
        crate::until_waiting(&client, held.key().as_str(), 1).await;
        eventually("both wait", async || {
            client.health().await.unwrap().waiting == 2
        })
        .await;
        match taken {
            [] => {
                server.command(&["ACL", "DELUSER", user]).await;
                // Its connections are closed. A request at this moment is told of that, and later
                // requests of the reason.
                eventually("the reason is known", async || {
                    let tried = refused(&client, Duration::ZERO).await;
                    kind(&tried) == StoreErrorKind::Denied
                })
                .await;
            }
            rules => {
                let rule = ["ACL", "SETUSER", user];
                let rule: Vec<_> = rule.iter().chain(rules).copied().collect();
                server.command(&rule).await;
            }
        }
        // New requests, for a lock that is free and for one that another client has.
        for wait in [Duration::ZERO, Duration::from_secs(20)] {
            let (error, elapsed) = timed(refused(&client, wait)).await;
            assert_eq!(kind(&error), StoreErrorKind::Denied, "{user}: {error}");
            assert!(elapsed < Duration::from_secs(10), "{user}: {elapsed:?}");
        }
        let refused = taken_lock(Duration::ZERO).acquire().await;
        assert_eq!(unavailable(refused), StoreErrorKind::Denied, "{user}");
        // Waiting requests: in a local queue only the first asks.
        for waiting in [forever, long] {
            let (result, elapsed) = timed(waiting).await;
            assert_eq!(
                unavailable(result.unwrap()),
                StoreErrorKind::Denied,
                "{user}"
            );
            assert!(elapsed < Duration::from_secs(10), "{user}: {elapsed:?}");
        }
        own.lost().await;
        drop(own);
        drop(held);
    }
}

/// Of requests that are ready together, one command may be made.
#[tokio::test]
async fn tries_at_the_same_time_are_told_what_one_is_told() {
    let server = RedisServer::start().await;
    let (client, _held) = allowed(&server, "app").await;
    let tries = async |fair: bool| {
        let tries = (0..20).map(|number| {
            let lock = client.lock(format!("{fair}-{number}"));
            async move {
                match fair {
                    true => lock.fair().wait(WAIT).acquire().await.map(drop),
                    false => lock.fenced().try_acquire().await.map(drop),
                }
            }
        });
        futures_util::future::join_all(tries).await
    };
    for (rule, said) in [
        ("CONFIG SET maxmemory 1", StoreErrorKind::OutOfMemory),
        ("CONFIG SET maxmemory 0", StoreErrorKind::Denied),
    ] {
        let rule: Vec<_> = rule.split(' ').collect();
        server.command(&rule).await;
        if said == StoreErrorKind::Denied {
            server.command(&["ACL", "SETUSER", "app", "-set"]).await;
        }
        for fair in [false, true] {
            for outcome in tries(fair).await {
                assert_eq!(unavailable(outcome), said);
            }
        }
    }
}

/// Another one's name that is refused costs nobody his lock.
#[tokio::test]
async fn tries_at_the_same_time_are_refused_only_if_their_own_key_is() {
    let server = RedisServer::start().await;
    let (client, _held) = allowed(&server, "app").await;
    client.lock("a").fenced().run(async {}).await.unwrap();
    let keys = ["~lock:a*", "~lock:%queue:{lock:a*", "~lock:%fence:{lock:a*"];
    let rule = ["ACL", "SETUSER", "app", "resetkeys"];
    server.command(&[&rule[..], &keys].concat()).await;
    let names: Vec<String> = (0..10).map(|number| format!("a{number}")).collect();
    let names = names.iter().map(String::as_str).chain(["b"]).chain(["a10"]);
    let tries = names.map(|name| {
        let lock = client.lock(name).fenced();
        async move { (lock.try_acquire().await, name) }
    });
    let mut held = Vec::new();
    for (outcome, name) in futures_util::future::join_all(tries).await {
        match name {
            "b" => assert_eq!(unavailable(outcome), StoreErrorKind::Denied),
            name => {
                let guard = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
                held.push(guard.unwrap_or_else(|| panic!("{name}")));
            }
        }
    }
    // Also of one that has lost the right to its key meanwhile.
    let rule = ["ACL", "SETUSER", "app", "resetkeys"];
    let keys = [
        "~lock:a1*",
        "~lock:%queue:{lock:a1*",
        "~lock:%fence:{lock:a1*",
    ];
    server.command(&[&rule[..], &keys].concat()).await;
    let names: Vec<String> = held.iter().map(|guard| guard.key().to_string()).collect();
    let releases = held.into_iter().map(Guard::release);
    let outcomes = futures_util::future::join_all(releases).await;
    for (outcome, name) in outcomes.into_iter().zip(names) {
        assert_eq!(
            outcome.is_ok(),
            name.starts_with("a1"),
            "{name}: {outcome:?}"
        );
    }
}

/// What is denied for several keys may be about any of them, so they are named, four at most.
#[tokio::test]
async fn a_request_for_several_keys_that_is_denied_names_them() {
    let server = RedisServer::start().await;
    let (client, _held) = allowed(&server, "app").await;
    let keys = ["resetkeys", "~lock:a*", "~lock:%queue:{lock:a*"];
    let rule = [&["ACL", "SETUSER", "app"][..], &keys].concat();
    server.command(&rule).await;
    let both = client.multi_lock(["z", "a"]);
    let many = client.multi_lock(["z", "a", "b", "c", "d", "e"]);
    let said = many.try_acquire().await.unwrap_err().to_string();
    assert!(
        said.contains("(\"a\", \"b\", \"c\", \"d\", 2 more together: "),
        "{said}"
    );
    for outcome in [
        both.clone().try_acquire().await.map(drop),
        both.wait(WAIT).acquire().await.map(drop),
    ] {
        let said = outcome.as_ref().unwrap_err().to_string();
        assert!(said.contains("(\"a\", \"z\" together: "), "{said}");
        assert_eq!(unavailable(outcome), StoreErrorKind::Denied);
    }
}

#[tokio::test]
async fn a_request_behind_the_first_is_not_busy_when_all_rights_are_gone() {
    let server = RedisServer::start().await;
    let (client, held) = allowed(&server, "app").await;
    let key = held.key().clone();
    let first = tokio::spawn(client.lock(key.clone()).wait_forever().acquire());
    crate::until_waiting(&client, key.as_str(), 1).await;
    let second = tokio::spawn(client.lock(key).wait(Duration::from_millis(400)).acquire());
    eventually("both wait", async || {
        client.health().await.unwrap().waiting == 2
    })
    .await;
    server.command(&["ACL", "SETUSER", "app", "-@all"]).await;
    let second = second.await.unwrap();
    assert_eq!(unavailable(second), StoreErrorKind::Denied);
    assert_eq!(unavailable(first.await.unwrap()), StoreErrorKind::Denied);
}

#[tokio::test]
async fn a_leader_that_may_not_lock_ends() {
    let server = RedisServer::start().await;
    let (client, held) = allowed(&server, "app").await;
    let led = |key: LockKey| client.lock(key).lead(async |_: &Guard| panic!("it leads"));
    let stands_by = tokio::spawn(led(held.key().clone()));
    crate::until_waiting(&client, held.key().as_str(), 1).await;
    server.command(&["ACL", "SETUSER", "app", "-@all"]).await;
    // Also who asks later.
    for led in [stands_by, tokio::spawn(led("another".into()))] {
        let ended = tokio::time::timeout(Duration::from_secs(20), led).await;
        let ended: Result<(), _> = ended.unwrap().unwrap();
        assert_eq!(unavailable(ended), StoreErrorKind::Denied);
    }
}

#[tokio::test]
async fn a_leader_whose_key_is_no_lock_ends() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    server.command(&["RPUSH", "lock:k", "a"]).await;
    let led = client.lock("k").lead(async |_: &Guard| panic!("it leads"));
    let ended = tokio::time::timeout(Duration::from_secs(20), led).await;
    let ended: Result<(), _> = ended.unwrap();
    assert!(
        matches!(ended, Err(LockError::KeyConflict { .. })),
        "{ended:?}"
    );
}

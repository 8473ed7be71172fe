//! Latches when messages and replies are lost, and when servers stop, freeze, refuse or forget.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{Latch, LockClient, LockError, StoreErrorKind};
use lock_store::timing::Timeouts;
use lock_store::{ClientId, Clock, Instant, Listener, Owner};
use lock_testkit::{
    Heard, LatchRequest, LatchVerb, Latched, Proxy, RedisServer, documented_rights, eventually,
    redis_store, server_is_at_least, wall_micros,
};
use tokio::task::JoinHandle;

use crate::{COMMAND_TIMEOUT, SLACK, client, enduring_client, timed, unavailable};

const LONG: Duration = Duration::from_secs(60);

async fn behind_proxy() -> (RedisServer, Proxy, LockClient) {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = client(&proxy.url()).await;
    (server, proxy, client)
}

fn waiting(latch: Latch, timeout: Duration) -> JoinHandle<Result<(), LockError>> {
    tokio::spawn(async move { latch.wait(timeout).await })
}

/// Waits until the only waiter knows the latch's state. It has a place before its look is answered,
/// and looks again after that.
async fn until_heard(server: &RedisServer) {
    let before = server.command_calls("evalsha").await;
    eventually("the waiter looks again", async || {
        server.command_calls("evalsha").await > before
    })
    .await;
}

/// Waits until this many processes have a place at the latch `k`.
async fn until_placed(server: &RedisServer, places: i64) {
    eventually("they wait", async || {
        let placed: i64 = server.query(&["ZCARD", "lock:%latch:{lock:k}"]).await;
        placed == places
    })
    .await;
}

async fn count(server: &RedisServer) -> Option<u32> {
    server.query(&["HGET", "lock:k", "count"]).await
}

#[tokio::test]
async fn a_lost_message_costs_time_and_never_the_wait() {
    let (server, proxy, waiter) = behind_proxy().await;
    let latch = client(&server.url()).await.latch("k");
    for set_again in [false, true] {
        for round in 0..3 {
            let _ = latch.set(1).await.unwrap();
            let waiting = waiting(waiter.latch("k"), LONG);
            until_placed(&server, 1).await;
            // Its reply comes before this one, so from here on the waiter knows what it waits for.
            waiter.health().await.unwrap();
            match round {
                0 => proxy.cut(),
                1 => _ = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await,
                // The message itself is lost, and the connection stays.
                _ => proxy.drop_replies(true),
            }
            latch.count_down().await.unwrap();
            if set_again {
                assert!(latch.set(1).await.unwrap());
            }
            if round == 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                proxy.drop_replies(false);
            }
            waiting.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_message_that_is_never_sent_costs_no_wait() {
    let server = RedisServer::start().await;
    let rules = ["ACL", "SETUSER", "mute", "on", ">word", "~*", "&*", "+@all"];
    server.command(&rules).await;
    let mute = client(&format!("redis://mute:word@127.0.0.1:{}", server.port())).await;
    // It is taken away from a connection that is up.
    server
        .command(&["ACL", "SETUSER", "mute", "-publish"])
        .await;
    mute.latch("k").set(1).await.unwrap();
    let waiting = waiting(client(&server.url()).await.latch("k"), LONG);
    until_placed(&server, 1).await;
    assert_eq!(mute.latch("k").count_down().await.unwrap(), 0);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_count_whose_reply_is_dropped_counts_once() {
    let (server, proxy, client) = behind_proxy().await;
    let latch = client.latch("k");
    latch.set(3).await.unwrap();
    for left in [2, 1, 0] {
        let mut log = server.requests().await;
        proxy.drop_replies(true);
        let counting = tokio::spawn({
            let latch = latch.clone();
            async move { latch.count_down().await }
        });
        let mut commands = 0;
        eventually("it was sent twice", async || {
            let requests = log.take().await;
            let counts = requests
                .iter()
                .filter(|one| one.text.contains("lock:%call"));
            commands += counts.count();
            commands >= 2
        })
        .await;
        proxy.drop_replies(false);
        assert_eq!(counting.await.unwrap().unwrap(), left);
        assert_eq!(count(&server).await, Some(left));
    }
}

#[tokio::test]
async fn calls_whose_connection_is_cut_take_effect_once() {
    let (server, proxy, client) = crate::network::patiently_behind_proxy().await;
    let latch = client.latch("k");
    latch.set(1).await.unwrap();
    latch.count_down().await.unwrap();
    for _ in 0..2 {
        proxy.cut_after_next("EVALSHA");
        assert!(latch.set(2).await.unwrap(), "this call set it");
        for left in [1, 0] {
            proxy.cut_after_next("EVALSHA");
            assert_eq!(latch.count_down().await.unwrap(), left);
            assert_eq!(count(&server).await, Some(left));
        }
        proxy.cut_after_next("EVALSHA");
        latch.wait(LONG).await.unwrap();
    }
    assert_eq!(proxy.connections(), 9);
}

/// A call that was delayed for so long that the server has forgotten it.
#[tokio::test]
async fn a_duplicate_that_arrives_when_its_call_is_forgotten_changes_nothing() {
    let server = RedisServer::start().await;
    let listener: Arc<dyn Listener> = Arc::<Heard>::default();
    let clock = Clock::new(tokio::runtime::Handle::current());
    let client = ClientId(1);
    let store = redis_store(
        &server.url(),
        "lock",
        client,
        &listener,
        clock,
        Timeouts::default(),
    );
    let ask = async |request, verb, age: Duration| {
        let age = u64::try_from(age.as_micros()).unwrap();
        let request = LatchRequest {
            key: "k".into(),
            owner: Owner { client, request },
            verb,
            made: Some(wall_micros() - age),
        };
        let by = Instant::now() + LONG;
        request.send(&*store, by).await.unwrap().value
    };
    let ttl = LONG;
    let set = LatchVerb::Set { count: 3, ttl };
    assert_eq!(ask(1, set, Duration::ZERO).await, Latched::Set(true));
    let counted = ask(2, LatchVerb::CountDown, Duration::ZERO).await;
    assert_eq!(counted, Latched::Counted(2));
    let forget = async || {
        for call in server.keys("lock:%call*").await {
            server.command(&["DEL", &call]).await;
        }
    };
    let held_up = Duration::from_secs(121);
    forget().await;
    let late = ask(2, LatchVerb::CountDown, held_up).await;
    assert!(matches!(late, Latched::Untimely { .. }), "{late:?}");
    assert_eq!(count(&server).await, Some(2));
    for (call, left) in [(3, 1), (4, 0)] {
        let counted = ask(call, LatchVerb::CountDown, Duration::ZERO).await;
        assert_eq!(counted, Latched::Counted(left));
    }
    forget().await;
    let late = ask(1, set, held_up).await;
    assert!(matches!(late, Latched::Untimely { .. }), "{late:?}");
    assert_eq!(count(&server).await, Some(0), "it stays open");
    assert!(server.keys("lock:%call*").await.is_empty());
}

#[tokio::test]
async fn an_unanswered_count_down_is_unavailable_and_counts_at_most_once() {
    let (server, proxy, _) = behind_proxy().await;
    let wait = Duration::from_millis(1500);
    let builder = LockClient::builder().url(proxy.url()).wait(wait);
    let latch = builder.connect().await.unwrap().latch("k");
    latch.set(3).await.unwrap();
    proxy.freeze();
    let (result, elapsed) = timed(latch.count_down()).await;
    assert_eq!(unavailable(result), StoreErrorKind::Timeout);
    assert!(elapsed <= wait + SLACK, "{elapsed:?}");
    proxy.thaw();
    // The delayed call arrives now, or never. However often it was sent, it counts once.
    let left = latch.count_down().await.unwrap();
    assert!(left >= 1, "{left}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let left = count(&server).await;
    assert!(left >= Some(1), "{left:?}");
}

/// Waits, makes the server fail, and expects all waiters to be told within `limit`.
async fn fail_while_waiting(
    fail: impl AsyncFn(&RedisServer),
    wait: Option<Duration>,
    set: bool,
    limit: Duration,
) {
    fail_while_waiting_with(COMMAND_TIMEOUT, fail, wait, set, limit).await;
}

/// The same for a client with this command timeout.
async fn fail_while_waiting_with(
    command_timeout: Duration,
    fail: impl AsyncFn(&RedisServer),
    wait: Option<Duration>,
    set: bool,
    limit: Duration,
) {
    let server = RedisServer::start().await;
    let builder = LockClient::builder().url(server.url());
    let builder = builder.command_timeout(command_timeout);
    let builder = builder.wait(Duration::from_secs(2));
    let client = builder.connect().await.unwrap();
    let latch = client.latch("k");
    if set {
        latch.set(1).await.unwrap();
    }
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let latch = latch.clone();
            tokio::spawn(timed(async move {
                match wait {
                    Some(wait) => latch.wait(wait).await,
                    None => latch.wait_forever().await,
                }
            }))
        })
        .collect();
    until_placed(&server, 1).await;
    fail(&server).await;
    for waiter in waiters {
        let (result, elapsed) = waiter.await.unwrap();
        unavailable(result);
        assert!(elapsed <= limit + SLACK, "{elapsed:?}");
    }
}

#[tokio::test]
async fn a_server_that_stops_or_freezes_while_waiting_is_unavailable_within_the_wait() {
    let wait = Duration::from_millis(1500);
    for set in [false, true] {
        fail_while_waiting(async |server| server.kill(), Some(wait), set, wait).await;
        fail_while_waiting(async |server| server.pause(), Some(wait), set, wait).await;
    }
    // An answer counts as recent in the second half of the wait. It freezes in the first.
    let (short, command_timeout) = (Duration::from_secs(4), Duration::from_secs(5));
    let pause = async |server: &RedisServer| server.pause();
    fail_while_waiting_with(command_timeout, pause, Some(short), true, command_timeout).await;
}

#[tokio::test]
async fn waiting_forever_does_not_wait_for_a_dead_server() {
    let limit = Duration::from_secs(3); // the client's default wait, from the last answer
    fail_while_waiting(async |server| server.kill(), None, true, limit).await;
    fail_while_waiting(async |server| server.pause(), None, false, limit).await;
}

#[tokio::test]
async fn calls_to_a_dead_or_frozen_server_are_unavailable_within_the_clients_wait() {
    let server = RedisServer::start().await;
    let wait = Duration::from_secs(1);
    let builder = LockClient::builder().url(server.url()).wait(wait);
    let latch = builder.connect().await.unwrap().latch("k");
    let fails = async || {
        let (set, one) = timed(latch.set(1)).await;
        let (counted, two) = timed(latch.count_down()).await;
        let (seen, three) = timed(latch.count()).await;
        unavailable(set);
        unavailable(counted);
        unavailable(seen);
        for elapsed in [one, two, three] {
            assert!(elapsed <= wait + SLACK, "{elapsed:?}");
        }
        let (looked, elapsed) = timed(latch.wait(Duration::ZERO)).await;
        unavailable(looked);
        assert!(elapsed <= COMMAND_TIMEOUT + SLACK, "{elapsed:?}");
    };
    server.pause();
    fails().await;
    server.kill();
    fails().await;
    server.restart().await;
    let set = eventually("it works again", async || latch.set(1).await.is_ok());
    set.await;
    assert_eq!(latch.count_down().await.unwrap(), 0);
}

#[tokio::test]
async fn a_wait_outlives_a_freeze_and_a_restart() {
    let server = RedisServer::builder().appendonly(true).start().await;
    let waiter = enduring_client(&server.url()).await;
    let other = client(&server.url()).await;
    other.latch("k").set(1).await.unwrap();
    let waiting = waiting(waiter.latch("k"), LONG);
    until_placed(&server, 1).await;
    server.pause();
    tokio::time::sleep(2 * COMMAND_TIMEOUT).await;
    server.resume();
    server.stop().await;
    server.restart().await;
    eventually("it counts", async || {
        other.latch("k").count_down().await.is_ok()
    })
    .await;
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_lost_its_data_is_a_lost_latch() {
    let server = RedisServer::start().await;
    let waiter = enduring_client(&server.url()).await;
    let other = client(&server.url()).await;
    for set_again in [false, true] {
        let set = eventually("it is set", async || other.latch("k").set(1).await.is_ok());
        set.await;
        let waiting = waiting(waiter.latch("k"), LONG);
        until_placed(&server, 1).await;
        until_heard(&server).await;
        if set_again {
            // Between two looks of the waiter: another latch, which it has not waited for.
            let again = "redis.call('DEL', 'lock:k') \
                         redis.call('HSET', 'lock:k', 'count', 1, \
                         'generation', '9000000000000000', 'opened', 0)";
            server.command(&["EVAL", again, "0"]).await;
        } else {
            server.restart_empty().await;
        }
        let lost = waiting.await.unwrap();
        assert!(
            matches!(lost, Err(LockError::LatchNotSet { .. })),
            "{lost:?}"
        );
    }
}

#[tokio::test]
async fn a_full_server_sets_no_latch_and_still_opens_the_one_that_is_set() {
    let server = RedisServer::start().await;
    let wait = Duration::from_secs(3);
    let builder = LockClient::builder().url(server.url()).wait(wait);
    let client = builder.connect().await.unwrap();
    let latch = client.latch("k");
    latch.set(2).await.unwrap();
    let waiter = waiting(latch.clone(), LONG);
    until_placed(&server, 1).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let refused = client.latch("new").set(1).await;
    assert_eq!(unavailable(refused), StoreErrorKind::OutOfMemory);
    assert_eq!(server.keys("*new*").await, Vec::<String>::new());
    let late = waiting(crate::client(&server.url()).await.latch("k"), LONG);
    until_placed(&server, 2).await;
    assert_eq!(latch.count_down().await.unwrap(), 1);
    // A latch still answers although a lock is refused for lack of memory.
    unavailable(client.lock("l").try_acquire().await);
    let busy = latch.wait(wait).await;
    assert!(
        matches!(busy, Err(LockError::LatchClosed { .. })),
        "{busy:?}"
    );
    assert_eq!(latch.count_down().await.unwrap(), 0);
    waiter.await.unwrap().unwrap();
    late.await.unwrap().unwrap();
    let setting = tokio::spawn(async move { client.latch("new").set(1).await });
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert!(setting.await.unwrap().unwrap(), "it is tried again");
}

#[tokio::test]
async fn a_user_with_the_documented_rights_needs_no_others() {
    if !server_is_at_least(7) {
        return;
    }
    let server = RedisServer::start().await;
    let rules = [
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">word",
        "~lock:*",
        "resetchannels",
        "&lock:*",
    ];
    let kinds = [
        "every client, rate limiters",
        "locks of one or several keys",
        "latches",
    ];
    let rights = kinds.into_iter().flat_map(documented_rights);
    let rules: Vec<&str> = rules.into_iter().chain(rights).collect();
    server.command(&rules).await;
    let client = client(&format!("redis://app:word@127.0.0.1:{}", server.port())).await;
    let latch = client.latch("k");
    let waiter = waiting(latch.clone(), LONG);
    until_placed(&server, 1).await;
    let busy = client.latch("other").wait(Duration::from_millis(50)).await;
    assert!(
        matches!(busy, Err(LockError::LatchClosed { .. })),
        "{busy:?}"
    );
    latch.set(1).await.unwrap();
    assert_eq!(latch.count().await.unwrap(), Some(1));
    latch.count_down().await.unwrap();
    waiter.await.unwrap().unwrap();
    eventually("the places are given up", async || {
        server.keys("lock:%latch*").await.is_empty()
    })
    .await;
    let denied: Vec<Vec<redis::Value>> = server.query(&["ACL", "LOG"]).await;
    assert!(denied.is_empty(), "{denied:?}");
}

#[tokio::test]
async fn a_missing_permission_fails_at_once() {
    let server = RedisServer::start().await;
    let rules = [
        "ACL", "SETUSER", "app", "on", ">word", "~other:*", "&*", "+@all",
    ];
    server.command(&rules).await;
    let url = format!("redis://app:word@127.0.0.1:{}", server.port());
    let client = LockClient::builder().url(url).connect_lazy().unwrap();
    let latch = client.latch("k");
    let limit = Duration::from_secs(5);
    for (result, elapsed) in [
        timed(async { latch.set(1).await.map(drop) }).await,
        timed(async { latch.count_down().await.map(drop) }).await,
        timed(latch.wait(LONG)).await,
        timed(latch.wait_forever()).await,
    ] {
        assert_eq!(unavailable(result), StoreErrorKind::Denied);
        assert!(elapsed < limit, "{elapsed:?}");
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_a_conflict() {
    let server = RedisServer::start().await;
    let latch = client(&server.url()).await.latch("k");
    let conflict = |result: Result<(), LockError>| match result {
        Err(LockError::KeyConflict { .. }) => {}
        other => panic!("{other:?}"),
    };
    for taken in [
        "SET lock:k text",
        "RPUSH lock:k item",
        "ZADD lock:k 1 member",
        // Foreign hashes: Redisson's lock, and one that only looks like ours.
        "HSET lock:k 285475da-9152-4c83-822a-67ee2f116a79:52 1",
        "HSET lock:k count many generation 1 opened 0",
        "HSET lock:k count 5",
    ] {
        let words: Vec<&str> = taken.split(' ').collect();
        server.command(&["DEL", "lock:k"]).await;
        server.command(&words).await;
        let before: Vec<u8> = server.query(&["DUMP", "lock:k"]).await;
        conflict(latch.set(1).await.map(drop));
        conflict(latch.count_down().await.map(drop));
        conflict(latch.count().await.map(drop));
        conflict(latch.wait(LONG).await);
        conflict(latch.wait_forever().await);
        let after: Vec<u8> = server.query(&["DUMP", "lock:k"]).await;
        assert_eq!(before, after, "{taken}");
        assert_eq!(server.keys("*").await, ["lock:k"], "{taken}");
    }
    // A helper key of another type does not prevent a count-down.
    server.command(&["DEL", "lock:k"]).await;
    let helper = "lock:%latch:{lock:k}";
    server.command(&["SET", helper, "text"]).await;
    latch.set(1).await.unwrap();
    conflict(latch.wait(LONG).await);
    assert_eq!(latch.count_down().await.unwrap(), 0);
    latch.wait(LONG).await.unwrap();
    assert_eq!(server.keys(helper).await, [helper]);
}

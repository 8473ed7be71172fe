//! Redis: what today's scripts and clients make of the forms that a later version may store and
//! send. See `version.lua`.

use std::time::Duration;

use lock_runtime::StoreErrorKind;
use lock_store::{
    Acquired, Failure, FoundHolder, LatchCall, LatchFound, Permits, Queue, RateRequest, Released,
    Renewed, StoreError,
};
use lock_testkit::{Backend, RedisBackend, RedisServer, eventually, wall_micros};

use crate::clients::{A, B, Clients, LEASE, READ, WRITE, by, claim, owner, permits, request};

const KINDS: [Option<Permits>; 4] = [None, READ, WRITE, permits(2)];
const QUEUE: &str = "lock:%queue:{lock:k}";

struct Stage {
    clients: Clients,
    backend: Backend,
}

impl Stage {
    async fn new() -> Self {
        let backend = RedisBackend::redis().await;
        let clients = Clients::of(&*backend).await;
        Self { clients, backend }
    }

    fn server(&self) -> &RedisServer {
        self.backend.one_redis().unwrap()
    }

    /// A line of words, as in `redis-cli`.
    async fn command(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        self.server().command(&words).await;
    }

    async fn dump(&self, key: &str) -> Option<Vec<u8>> {
        self.server().query(&["DUMP", key]).await
    }
}

/// The error says which versions meet and what to do, and asking again does not help.
fn expect_version<T: std::fmt::Debug>(reply: Result<T, Failure>) {
    let error: StoreError = reply.unwrap_err().error;
    assert_eq!(error.kind(), StoreErrorKind::OtherVersion, "{error}");
    let said = error.to_string();
    assert!(said.contains("version 2"), "{said}");
    assert!(said.contains("knows version 1"), "{said}");
    assert!(said.contains("newer"), "{said}");
}

#[tokio::test]
async fn an_exclusive_hold_of_a_later_form_is_respected() {
    let stage = Stage::new().await;
    let me = owner(A, 1);
    for later in ["v2:anything", &format!("v2:{me}"), &format!("{me}:v2")] {
        stage.command(&format!("SET lock:k {later} PX 60000")).await;
        let before = stage.dump("lock:k").await;
        for queue in [Queue::Barge, Queue::Respect, Queue::Join] {
            let reply = stage.clients.acquire(claim("k", me, None), queue, 1).await;
            let busy = matches!(reply, Ok(Acquired::Busy(_)));
            assert!(busy, "{later} {queue:?}: {reply:?}");
        }
        let claim = || claim("k", me, None);
        assert_eq!(stage.clients.renew(claim()).await, Renewed::Gone);
        let released = stage.clients.release(claim(), Duration::ZERO).await;
        assert_eq!(released, Released::NotHeld);
        let abandon = request(claim(), Queue::Join, 1);
        let abandoned = stage.clients.a.abandon(abandon, by()).await.unwrap();
        assert_eq!(abandoned.value, Released::NotHeld);
        let found = stage.clients.inspect("k").await.holder;
        assert_eq!(found, Some(FoundHolder::parse(later.as_bytes())));
        assert_eq!(stage.dump("lock:k").await, before, "{later}");
    }
}

#[tokio::test]
async fn shares_of_a_later_form_are_refused_and_stay_as_they_are() {
    let stage = Stage::new().await;
    let (me, clients) = (owner(A, 1), &stage.clients);
    stage.command("ZADD lock:k 2 version 7 members").await;
    let before = stage.dump("lock:k").await;
    for share in KINDS {
        let claim = || claim("k", me, share);
        for queue in [Queue::Respect, Queue::Join] {
            expect_version(clients.acquire(claim(), queue, 0).await);
        }
        expect_version(clients.a.fence(claim(), by()).await);
        // Nothing there is this client's.
        assert_eq!(clients.renew(claim()).await, Renewed::Gone);
        let released = clients.release(claim(), Duration::ZERO).await;
        assert_eq!(released, Released::NotHeld);
    }
    expect_version(clients.a.inspect("k".into(), by()).await);
    expect_version(clients.a.force_release("k".into(), by()).await);
    let free = request(claim("free", me, None), Queue::Respect, 0);
    let taken = request(claim("k", me, None), Queue::Respect, 0);
    expect_version(clients.a.acquire_all(vec![free, taken], by()).await);
    assert_eq!(stage.dump("lock:k").await, before);
    assert_eq!(stage.server().keys("*").await, ["lock:k"]);
}

#[tokio::test]
async fn a_fence_counter_of_a_later_form_is_refused_and_no_lock_is_taken() {
    let stage = Stage::new().await;
    let (me, clients) = (owner(A, 1), &stage.clients);
    stage
        .command("SET lock:%fence:{lock:k} v2:1800000000000000")
        .await;
    let before = stage.dump("lock:%fence:{lock:k}").await;
    for share in KINDS {
        for queue in [Queue::Barge, Queue::Respect] {
            expect_version(clients.acquire(claim("k", me, share), queue, 1).await);
            assert_eq!(clients.inspect("k").await.holder, None);
        }
        // Without a token, it does not matter.
        clients.take(claim("k", me, share), 0).await;
        expect_version(clients.a.fence(claim("k", me, share), by()).await);
        clients.release(claim("k", me, share), Duration::ZERO).await;
    }
    let mut all = request(claim("k", me, None), Queue::Respect, 1);
    all.tokens = 1;
    expect_version(clients.a.acquire_all(vec![all], by()).await);
    assert_eq!(stage.dump("lock:%fence:{lock:k}").await, before);
}

/// A later version keeps its queue under another name. What stands in this one all the same is
/// nobody's whom today's scripts could serve.
#[tokio::test]
async fn places_of_a_later_form_are_skipped_and_granted_nothing() {
    let stage = Stage::new().await;
    let (holder, next, later) = (owner(A, 1), owner(B, 1), owner(B, 9));
    let mut forms = vec![format!("v2:{later}:1000:0")];
    for rest in [":0:1:5:7", ":0:1", ":0:1:5:", ":x", ":0:v2", ":"] {
        forms.push(format!("{later}:1000:0{rest}"));
    }
    for share in [None, WRITE, permits(5)] {
        for form in &forms {
            stage.clients.take(claim("k", holder, share), 0).await;
            // As old as a place can be that counts, and as one that was suspended long ago.
            let now = wall_micros() - 1_000_000;
            stage.command(&format!("ZADD {QUEUE} {now} {form}")).await;
            let suspended = 3_000_000_000_000_000 + now;
            stage
                .command(&format!("ZADD {QUEUE} {suspended} v2:{form}"))
                .await;
            stage.clients.wait(claim("k", next, share), 0).await;
            stage.clients.wait(claim("k", next, share), 0).await;
            stage
                .clients
                .release(claim("k", holder, share), Duration::ZERO)
                .await;
            eventually("the next one is told", async || {
                let granted = stage.clients.heard_by_b.granted.lock().unwrap();
                granted.iter().any(|(owner, _)| *owner == next)
            })
            .await;
            let granted = std::mem::take(&mut *stage.clients.heard_by_b.granted.lock().unwrap());
            assert_eq!(granted, [(next, None)], "{form} {share:?}");
            stage
                .clients
                .release(claim("k", next, share), Duration::ZERO)
                .await;
            assert!(
                stage.server().keys("*").await.is_empty(),
                "{form} {share:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_bucket_and_a_log_of_a_later_form_are_refused_and_nobody_passes() {
    let stage = Stage::new().await;
    let second = Duration::from_secs(1);
    for (key, mut one) in [
        (
            "lock:%rate:{lock:k}",
            RateRequest::new("k".into(), second, 5),
        ),
        (
            "lock:%limit:{lock:k}",
            RateRequest::at_most("k".into(), 5, second),
        ),
    ] {
        stage.command(&format!("SET {key} v2:1:2:3")).await;
        let before = stage.dump(key).await;
        one.tokens = 1;
        expect_version(stage.clients.a.rate(one, by()).await);
        assert_eq!(stage.dump(key).await, before);
    }
}

#[tokio::test]
async fn a_hash_of_an_application_with_a_version_is_no_latch_of_a_later_form() {
    let stage = Stage::new().await;
    for other in ["version 7 name x", "version 1.2.0"] {
        stage.command("DEL lock:k").await;
        stage.command(&format!("HSET lock:k {other}")).await;
        let found = stage.clients.a.latch_look("k".into(), by()).await;
        assert_eq!(found.unwrap().value, LatchFound::Conflict);
    }
}

#[tokio::test]
async fn a_latch_of_a_later_form_is_refused_and_stays_as_it_is() {
    let stage = Stage::new().await;
    let store = &stage.clients.a;
    // Also one that looks like today's but for its version.
    for later in [
        "version 2 generation 7 left 3",
        "count 3 generation 7 opened 0 version 2",
    ] {
        stage.command("DEL lock:k").await;
        stage.command(&format!("HSET lock:k {later}")).await;
        let before = stage.dump("lock:k").await;
        let call = |request| LatchCall::new("k".into(), owner(A, request), Some(wall_micros()));
        expect_version(store.latch_set(call(1), 3, LEASE, by()).await);
        expect_version(store.latch_count_down(call(2), by()).await);
        expect_version(store.latch_look("k".into(), by()).await);
        expect_version(store.latch_wait(call(3), by()).await);
        assert_eq!(stage.dump("lock:k").await, before, "{later}");
        assert_eq!(stage.server().keys("*").await, ["lock:k"]);
    }
}

#[tokio::test]
async fn messages_of_a_later_version_are_skipped() {
    let stage = Stage::new().await;
    let (holder, waits) = (owner(A, 1), owner(B, 1));
    stage.clients.take(claim("k", holder, None), 0).await;
    stage.clients.wait(claim("k", waits, None), 0).await;
    let granted = format!("lock:%granted:{:032x}", B.0);
    let told = format!("lock:%client:{:032x}", B.0);
    for (channel, message) in [
        (&granted, format!("2 granted {waits} 7")),
        (&granted, format!("1 passed {waits} 7")),
        (&granted, format!("v2:granted {waits}")),
        (&told, format!("2 who {:032x} k", A.0)),
        (&told, format!("1 whom {:032x} k", A.0)),
    ] {
        stage
            .server()
            .command(&["PUBLISH", channel, &message])
            .await;
    }
    // The next message that is understood shows that they were heard before.
    stage
        .clients
        .release(claim("k", holder, None), Duration::ZERO)
        .await;
    let heard = &stage.clients.heard_by_b;
    eventually("it is told", async || {
        !heard.granted.lock().unwrap().is_empty()
    })
    .await;
    assert_eq!(*heard.granted.lock().unwrap(), [(waits, None)]);
    assert!(heard.told.lock().unwrap().is_empty());
}

/// As a user sees it.
#[tokio::test]
async fn an_error_names_the_key_and_both_versions() {
    let stage = Stage::new().await;
    stage.command("ZADD lock:k 2 version").await;
    let client = stage.backend.client().await;
    let refused = client.rw_lock("k").read().acquire().await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("`k`") || said.contains(" k"), "{said}");
    assert!(
        said.contains("version 2") && said.contains("version 1"),
        "{said}"
    );
}

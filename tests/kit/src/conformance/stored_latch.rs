//! What the scripts of latches leave in Redis, and what they make of what they find there.

use std::time::Duration;

use crate::{Backend, LatchRequest, LatchVerb, Latched, RedisServer, eventually, wall_micros};
use lock_store::LatchState;

use crate::conformance::stored::Stored;
use crate::conformance::verbs::{by, owner};

super::on_one_server!(
    a_latch_lives_as_long_as_was_asked_and_calls_are_remembered_for_two_minutes,
    a_place_counts_for_a_minute_and_is_then_removed,
    generations_follow_the_clock_or_the_last_one,
    an_incomplete_latch_is_a_conflict,
    places_that_are_something_else_keep_no_latch_shut,
);

const LATCH: &str = "lock:k";
const WAITERS: &str = "lock:%latch:{lock:k}";
const TTL: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

struct Latches(Stored);

impl Latches {
    fn on(backend: Backend) -> Self {
        Self(Stored::on(backend))
    }

    fn server(&self) -> &RedisServer {
        self.0.server()
    }

    async fn query<T: redis::FromRedisValue>(&self, line: &str) -> T {
        let words: Vec<&str> = line.split(' ').collect();
        self.server().query(&words).await
    }

    async fn ask(&self, call: u64, verb: LatchVerb) -> Latched {
        let request = LatchRequest {
            key: "k".into(),
            owner: owner(0, call),
            verb,
            made: Some(wall_micros()),
        };
        let reply = request.send(&*self.0.two.stores[0], by()).await;
        reply.unwrap().value
    }

    async fn set(&self, call: u64, count: u32) -> Latched {
        self.ask(call, LatchVerb::Set { count, ttl: TTL }).await
    }

    async fn look(&self) -> LatchState {
        match self.ask(99, LatchVerb::Look).await {
            Latched::Is(state) => state,
            other => panic!("{other:?}"),
        }
    }

    /// The key that remembers the only call so far.
    async fn call(&self) -> String {
        let mut calls = self.server().keys("*%call*").await;
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    /// Checks the time to live of a key that was written a moment ago.
    async fn assert_lives(&self, key: &str, longest: Duration) {
        let millis: u64 = self.query(&format!("PTTL {key}")).await;
        let left = Duration::from_millis(millis);
        assert!(
            left <= longest && left * 10 > longest * 9,
            "{key}: {left:?} {longest:?}"
        );
    }
}

fn now() -> Duration {
    Duration::from_micros(wall_micros())
}

async fn a_latch_lives_as_long_as_was_asked_and_calls_are_remembered_for_two_minutes(
    backend: Backend,
) {
    let stored = Latches::on(backend);
    assert_eq!(stored.ask(1, LatchVerb::CountDown).await, Latched::NotSet);
    assert!(stored.server().keys("*").await.is_empty());
    assert_eq!(stored.set(1, 2).await, Latched::Set(true));
    stored.assert_lives(LATCH, TTL).await;
    assert!(stored.look().await.remaining.unwrap() > TTL / 2);
    let call = stored.call().await;
    stored.assert_lives(&call, 2 * MINUTE).await;
    assert_eq!(stored.set(2, 9).await, Latched::Set(false));
    let _: u64 = stored.query(&format!("DEL {call}")).await;
    for left in [1, 0] {
        let counted = stored.ask(3 + u64::from(left), LatchVerb::CountDown).await;
        assert_eq!(counted, Latched::Counted(left));
        let call = stored.call().await;
        stored.assert_lives(&call, 2 * MINUTE).await;
        let kept: u32 = stored.query(&format!("GET {call}")).await;
        assert_eq!(kept, left);
        let _: u64 = stored.query(&format!("DEL {call}")).await;
    }
    // The latch is open, and stays open.
    let counted = stored.ask(5, LatchVerb::CountDown).await;
    assert_eq!(counted, Latched::Counted(0));
    assert_eq!(stored.server().keys("*").await, [LATCH]);
    stored.assert_lives(LATCH, TTL).await;
    assert_eq!(stored.set(6, 1).await, Latched::Set(true));
}

async fn a_place_counts_for_a_minute_and_is_then_removed(backend: Backend) {
    let stored = Latches::on(backend);
    for is_set in [false, true] {
        if is_set {
            stored.set(1, 1).await;
        }
        let _: u64 = stored.query(&format!("ZADD {WAITERS} 1 old")).await;
        let before = now();
        stored.ask(2, LatchVerb::Wait).await;
        stored.assert_lives(WAITERS, MINUTE).await;
        let places: Vec<(String, f64)> = stored
            .query(&format!("ZRANGE {WAITERS} 0 -1 WITHSCORES"))
            .await;
        assert_eq!(places.len(), 1, "{places:?}");
        let ends = Duration::from_millis(places[0].1 as u64);
        let (first, last) = (before + MINUTE, now() + MINUTE);
        assert!(
            ends + Duration::from_millis(1) >= first && ends <= last,
            "{ends:?}"
        );
        // A repeat keeps the place.
        let _: u64 = stored.query(&format!("PEXPIRE {WAITERS} 5000")).await;
        stored.ask(2, LatchVerb::Wait).await;
        stored.assert_lives(WAITERS, MINUTE).await;
    }
    // A look is no wait.
    let _: u64 = stored.query(&format!("DEL {WAITERS}")).await;
    stored.look().await;
    let there: u64 = stored.query(&format!("EXISTS {WAITERS}")).await;
    assert_eq!(there, 0);
}

async fn generations_follow_the_clock_or_the_last_one(backend: Backend) {
    let stored = Latches::on(backend);
    let before = now();
    stored.set(1, 1).await;
    let first = stored.look().await;
    let times = before.as_micros()..=now().as_micros();
    assert!(times.contains(&u128::from(first.generation)), "{first:?}");
    assert_eq!(first.opened, 0);
    let ahead = first.generation + 3_600_000_000;
    let _: u64 = stored
        .query(&format!("HSET {LATCH} generation {ahead}"))
        .await;
    stored.ask(2, LatchVerb::CountDown).await;
    let open = stored.look().await;
    assert_eq!((open.count, open.generation, open.opened), (0, ahead, 0));
    stored.set(3, 7).await;
    let next = stored.look().await;
    assert_eq!(
        (next.count, next.generation, next.opened),
        (7, ahead + 1, ahead)
    );
}

async fn an_incomplete_latch_is_a_conflict(backend: Backend) {
    let stored = Latches::on(backend);
    for half in [
        "count 5 opened 0",
        "count 5 generation 1",
        "generation 1 opened 0",
        "count x generation 1 opened 0",
        "count 5 generation x opened 0",
    ] {
        let _: u64 = stored.query(&format!("DEL {LATCH}")).await;
        let _: u64 = stored.query(&format!("HSET {LATCH} {half}")).await;
        assert_eq!(stored.set(1, 1).await, Latched::Conflict, "{half}");
        for verb in [LatchVerb::CountDown, LatchVerb::Look, LatchVerb::Wait] {
            assert_eq!(stored.ask(2, verb).await, Latched::Conflict, "{half}");
        }
        assert_eq!(stored.server().keys("*").await, [LATCH], "{half}");
    }
}

async fn places_that_are_something_else_keep_no_latch_shut(backend: Backend) {
    let stored = Latches::on(backend);
    stored.set(1, 1).await;
    let _: String = stored.query(&format!("SET {WAITERS} text")).await;
    assert_eq!(stored.ask(2, LatchVerb::Wait).await, Latched::Conflict);
    let counted = stored.ask(3, LatchVerb::CountDown).await;
    assert_eq!(counted, Latched::Counted(0));
    assert_eq!(
        stored.query::<String>(&format!("GET {WAITERS}")).await,
        "text"
    );
    // Nor does an impossible place, and all places behind it are told.
    let _: u64 = stored.query(&format!("DEL {WAITERS}")).await;
    stored.set(4, 1).await;
    for waiter in 10..14 {
        stored.ask(waiter, LatchVerb::Wait).await;
    }
    let _: u64 = stored.query(&format!("ZADD {WAITERS} 1 text")).await;
    let counted = stored.ask(6, LatchVerb::CountDown).await;
    assert_eq!(counted, Latched::Counted(0));
    let generation = stored.look().await.generation;
    let told = (10..14).map(|waiter| (owner(0, waiter), Some(generation)));
    let told: Vec<_> = told.collect();
    eventually("they are told", async || {
        *stored.0.two.heard[0].0.lock().unwrap() == told
    })
    .await;
    let there: u64 = stored.query(&format!("EXISTS {WAITERS}")).await;
    assert_eq!(there, 0);
}

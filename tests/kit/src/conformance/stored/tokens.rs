//! The fence counter. It is followed if it exists, replaced if it was lost, and never trusted if it
//! is spoilt.

use std::time::Duration;

use crate::{Backend, eventually, wall_micros};
use lock_store::{AcquiredAll, Fenced};

use super::{FENCE, LAST_TOKEN, LOCK, Stored, WHOLES, permits};
use crate::conformance::verbs::owner;

crate::conformance::on_one_server!(
    a_fence_counter_that_is_spoilt_grants_nothing,
    a_spoilt_counter_leaves_no_ended_lease_in_use,
    tokens_follow_the_counter_or_the_clock_and_those_asked_for_are_reserved,
    the_last_tokens_are_given_and_none_that_a_double_cannot_hold,
);

async fn a_fence_counter_that_is_spoilt_grants_nothing(backend: Backend) {
    let stored = Stored::on(backend);
    let (me, next, last) = (owner(0, 1), owner(0, 2), owner(0, 3));
    let largest = "9007199254740991";
    for counter in [
        "x",
        "-1",
        largest,
        "99999999999999999999",
        "nan",
        "-nan",
        "inf",
        "1.5",
        "0x10",
    ] {
        stored.two.heard[0].0.lock().unwrap().clear();
        stored.command(&format!("SET {FENCE} {counter}")).await;
        for share in WHOLES {
            assert_eq!(stored.fenced(me, share, 1).await, None, "{counter}");
            assert_eq!(stored.number("EXISTS lock:k").await, 0, "{counter}");
            stored.take(me, share).await;
            assert_eq!(stored.fence(me, share).await, Fenced::Conflict);
            // A waiter that needs a token can't have the lock. One that needs none can.
            stored.queue(next, share, 1).await;
            stored.queue(last, share, 0).await;
            stored.free(me, share).await;
            stored.free(last, share).await;
        }
        stored.await_grants(&[last; WHOLES.len()]).await;
        let both = stored.all(me, &["a", "k"], 1).await;
        assert_eq!(both, AcquiredAll::Conflict(1), "{counter}");
        assert_eq!(stored.server().keys("*").await, [FENCE], "{counter}");
        let left: String = stored.server().query(&["GET", FENCE]).await;
        assert_eq!(left, counter);
    }
    stored.command(&format!("DEL {FENCE}")).await;
    stored.command(&format!("HSET {FENCE} field 1")).await;
    assert_eq!(stored.fenced(me, None, 1).await, None);
    assert_eq!(stored.server().keys("*").await, [FENCE]);
}

async fn a_spoilt_counter_leaves_no_ended_lease_in_use(backend: Backend) {
    let stored = Stored::on(backend);
    let (me, gone, rests) = (owner(0, 1), owner(0, 2), owner(0, 3));
    for spoilt in [true, false] {
        stored.take(gone, permits(2, 5)).await;
        stored.take(rests, permits(1, 5)).await;
        stored.command(&format!("ZADD {LOCK} 1 {gone}:2")).await;
        stored.command(&format!("SET {FENCE} x")).await;
        if spoilt {
            assert_eq!(stored.fenced(me, permits(1, 5), 1).await, None);
        } else {
            assert_eq!(stored.fence(rests, permits(1, 5)).await, Fenced::Conflict);
        }
        assert_eq!(stored.number("ZSCORE lock:k used").await, -1);
        assert_eq!(stored.number("ZCARD lock:k").await, 3);
        stored.free(rests, permits(1, 5)).await;
    }
}

async fn tokens_follow_the_counter_or_the_clock_and_those_asked_for_are_reserved(backend: Backend) {
    let stored = Stored::on(backend);
    let (me, next) = (owner(0, 1), owner(0, 2));
    let day = Duration::from_secs(86400);
    let counter = async || -> u64 { stored.server().query(&["GET", FENCE]).await };
    for share in WHOLES {
        // A lost counter begins again above every earlier token.
        stored.command(&format!("DEL {FENCE}")).await;
        let before = wall_micros();
        let first = stored.fenced(me, share, 3).await.unwrap();
        assert!(
            (before..=wall_micros()).contains(&first),
            "{before} {first}"
        );
        assert_eq!(counter().await, first + 2);
        stored.assert_lives(FENCE, day).await;
        stored.free(me, share).await;
        // A counter ahead of the clock is followed, one by one.
        let ahead = wall_micros() + 3_600_000_000;
        stored.command(&format!("SET {FENCE} {ahead}")).await;
        assert_eq!(stored.fenced(me, share, 3).await, Some(ahead + 1));
        assert_eq!(counter().await, ahead + 3);
        stored.assert_lives(FENCE, day).await;
        assert_eq!(stored.fence(me, share).await, Fenced::Token(ahead + 4));
        assert_eq!(counter().await, ahead + 4);
        // Also at a hand-over.
        stored.queue(next, share, 2).await;
        stored.free(me, share).await;
        let told = async || stored.two.heard[0].0.lock().unwrap().pop();
        eventually("it is told", async || {
            told().await == Some((next, Some(ahead + 5)))
        })
        .await;
        assert_eq!(counter().await, ahead + 6);
        stored.free(next, share).await;
        let both = stored.all(me, &["k"], 2).await;
        let tokens = vec![Some(ahead + 7)];
        assert_eq!(both, AcquiredAll::granted(tokens));
        assert_eq!(counter().await, ahead + 8);
        stored.free(me, None).await;
    }
}

async fn the_last_tokens_are_given_and_none_that_a_double_cannot_hold(backend: Backend) {
    let stored = Stored::on(backend);
    let me = owner(0, 1);
    for (counter, tokens, first) in [
        (LAST_TOKEN - 1, 1, Some(LAST_TOKEN)),
        (LAST_TOKEN - 1, 2, None),
        (LAST_TOKEN - 3, 3, Some(LAST_TOKEN - 2)),
        (LAST_TOKEN, 1, None),
    ] {
        stored.command(&format!("SET {FENCE} {counter}")).await;
        assert_eq!(stored.fenced(me, None, tokens).await, first);
        if first.is_some() {
            stored.free(me, None).await;
        }
    }
    stored.command(&format!("SET {FENCE} 0")).await;
    assert!(stored.fenced(me, None, 1).await > Some(0));
}

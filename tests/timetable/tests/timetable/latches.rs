//! Latches.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use lock_runtime::{LockClientBuilder, LockError, StoreErrorKind};
use lock_store::{HandedOver, LatchCounted, LatchFound, LatchState, Link, Trust};
use lock_testkit_core::store_decorator::Reply;

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, short, simulated};

#[test]
fn a_call_is_repeated_for_as_long_as_the_wait_of_its_client() {
    simulated(async {
        for (fate, error, ends) in [
            (DOWN, "Disconnected", 9500),
            (Fate::Silence, "Timeout", 10_000),
            (Fate::Lost, "Timeout", 10_000),
            (Fate::Fails(StoreErrorKind::Denied), "Denied", 0),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{fate:?}"));
            store.set_usual("set", fate);
            let latch = client.latch("l");
            let answer = store.ask(WAIT, latch.set(1)).await.unwrap_err();
            assert_eq!((short(&answer).as_str(), store.now()), (error, ends));
            // The last one has a whole command's time.
            let last = store.when("set").pop();
            assert_eq!(last, Some(if ends == 0 { 0 } else { 9500 }));
        }
        let (store, client) = RecordingStore::open().await;
        store.title("counted down");
        store.next("count_down", &[DOWN, Fate::Silence]);
        store.ask(WAIT, client.latch("l").set(2)).await.unwrap();
        let left = store.ask(WAIT, client.latch("l").count_down()).await;
        assert_eq!((left.unwrap(), store.when("count_down").len()), (1, 3));
    });
}

/// The store tells each client its time once.
#[test]
fn a_call_is_sent_again_at_once_with_the_time_that_the_store_told() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.title("first calls and later ones");
        let latch = client.latch("l");
        store.ask(WAIT, latch.set(9)).await.unwrap();
        for _ in 0..2 {
            store.ask(WAIT, latch.count_down()).await.unwrap();
            ms(3_600_000).await;
        }
        let calls = [
            (0, "set"),
            (0, "set"),
            (0, "count_down"),
            (3_600_000, "count_down"),
        ];
        assert_eq!(store.calls(), calls);
        let (store, client) = RecordingStore::open().await;
        store.title("the store's clock jumps and jumps");
        let latch = client.latch("l");
        store.ask(WAIT, latch.set(9)).await.unwrap();
        let jumps = || Reply::LatchCountDown(LatchCounted::Untimely { now: 1 });
        for _ in 0..4 {
            store.answer(jumps());
        }
        let left = store.ask(WAIT, latch.count_down()).await;
        assert_eq!(left.unwrap(), 8);
        // The time of the fifth call is wrong, too. The store tells the time again.
        assert_eq!(store.when("count_down"), [0, 0, 50, 150, 350, 750]);
        for _ in 0..99 {
            store.answer(jumps());
        }
        let error = store.ask(WAIT, latch.count_down()).await.unwrap_err();
        assert_eq!(short(&error), "Timeout, seen by us");
    });
}

/// The store may have forgotten the call by the time it is polled again.
#[test]
fn a_call_that_was_not_polled_for_long_is_not_sent_again() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let latch = client.latch("l");
        store.ask(WAIT, latch.set(9)).await.unwrap();
        store.next("count_down", &[Fate::Lost]);
        let mut call = Box::pin(store.ask(WAIT, latch.count_down()));
        let early = tokio::time::timeout(of(520), &mut call).await;
        assert!(early.is_err(), "it is about to repeat it");
        ms(200_000).await;
        let error = call.await.unwrap_err();
        assert_eq!(short(&error), "Timeout");
        assert_eq!(store.when("count_down"), [0]);
        let left = store.ask(WAIT, latch.count()).await.unwrap();
        assert_eq!(left, Some(8));
    });
}

#[test]
fn one_looks_for_all_each_second_and_leaves_when_all_have_left() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.ask(WAIT, client.latch("l").set(1)).await.unwrap();
        store.seen();
        let waits = |wait| {
            let latch = client.latch("l");
            tokio::spawn(store.ask(wait, async move { latch.wait(of(wait)).await }))
        };
        let one = waits(2500);
        ms(300).await;
        for (waits, ends) in [(waits(1200), 1500), (one, 2500)] {
            let error = waits.await.unwrap().unwrap_err();
            assert!(matches!(error, LockError::LatchClosed { .. }), "{error}");
            assert_eq!(store.now(), ends);
        }
        ms(10).await;
        let calls = store.calls();
        let looks = calls.iter().filter(|(_, verb)| *verb == "wait");
        let looks: Vec<_> = looks.map(|(at, _)| *at).collect();
        // Each one looks at once. Later looks serve both.
        assert_eq!(looks, [0, 300, 1300, 2300]);
        let left: Vec<_> = calls.iter().filter(|(_, verb)| *verb == "leave").collect();
        assert_eq!(left, [&(2500, "leave")]);
    });
}

#[test]
fn a_look_that_fails_is_tried_again() {
    simulated(async {
        let fails = Fate::Fails;
        for (fate, error, looks) in [
            (DOWN, "Disconnected", [1, 2, 6]),
            (Fate::Silence, "Timeout", [1, 1, 5]),
            (fails(StoreErrorKind::Denied), "Denied", [1, 1, 1]),
            (fails(StoreErrorKind::OutOfMemory), "OutOfMemory", [1, 2, 6]),
        ] {
            for (wait, looks) in [0, 100, 3000].into_iter().zip(looks) {
                let (store, client) = RecordingStore::open().await;
                store.title(format!("{fate:?}, wait {wait}"));
                store.ask(WAIT, client.latch("l").set(1)).await.unwrap();
                store.seen();
                for verb in ["wait", "look"] {
                    store.set_usual(verb, fate);
                }
                let latch = client.latch("l");
                let waits = store.ask(wait, latch.wait(of(wait)));
                let answer = waits.await.unwrap_err();
                assert!(short(&answer).starts_with(error), "{answer}");
                assert!(store.now() <= wait.max(500));
                // A request that may not wait takes no place.
                let verb = if wait == 0 { "look" } else { "wait" };
                assert_eq!(store.when(verb).len(), looks);
                store.next("leave", &[DOWN, DOWN]);
                ms(3000).await;
                let left = store.when("leave").len();
                assert_eq!(left, if wait == 0 { 0 } else { 3 });
            }
        }
    });
}

/// Counts left, generation, and the generation that opened before it.
fn name(reply: &LatchFound) -> String {
    match reply {
        LatchFound::Is(latch) => format!("{}/{}/{}", latch.count, latch.generation, latch.opened),
        other => format!("{other:?}"),
    }
}

fn state(count: u32, generation: u64, opened: u64) -> LatchFound {
    let mut latch = LatchState::new(count, generation);
    latch.opened = opened;
    latch.remaining = Some(of(60_000));
    LatchFound::Is(latch)
}

#[test]
fn what_a_waiter_learns_from_two_looks() {
    simulated(async {
        let (busy, lost) = (Some("closed after 1.7s"), Some("not set"));
        for (first, second, expected, ends) in [
            (state(1, 5, 0), state(1, 5, 0), busy, 1700),
            (state(1, 5, 0), state(0, 5, 0), None, 1000),
            (state(1, 5, 0), state(1, 6, 5), None, 1000),
            (state(1, 5, 0), state(1, 7, 6), None, 1000),
            (state(1, 5, 0), state(1, 6, 0), lost, 1000),
            (state(1, 5, 0), state(1, 6, 4), lost, 1000),
            (state(1, 5, 0), LatchFound::NotSet, lost, 1000),
            (LatchFound::NotSet, state(1, 5, 0), busy, 1700),
            (LatchFound::NotSet, state(1, 5, 4), None, 1000),
            (LatchFound::NotSet, LatchFound::NotSet, busy, 1700),
            (LatchFound::NotSet, state(0, 5, 0), None, 1000),
            (
                LatchFound::Conflict,
                LatchFound::NotSet,
                Some("conflict"),
                0,
            ),
            (state(1, 5, 0), LatchFound::Conflict, Some("conflict"), 1000),
        ] {
            let (store, client) = RecordingStore::open().await;
            let title = format!("{} then {}", name(&first), name(&second));
            store.title(&title);
            store.answer(Reply::LatchWait(first));
            store.answer(Reply::LatchWait(second));
            let latch = client.latch("l");
            let answer = store.ask(1700, latch.wait(of(1700))).await;
            let answer = answer.map_err(|error| short(&error));
            assert_eq!(
                (answer.err().as_deref(), store.now()),
                (expected, ends),
                "{title}"
            );
        }
    });
}

#[test]
fn messages_that_a_latch_has_opened() {
    simulated(async {
        let (closed, open, gone) = (state(1, 5, 0), state(0, 5, 0), LatchFound::NotSet);
        for (message, first, second, expected) in [
            (Some(5), closed, open, "open"),
            (Some(5), closed, closed, "waits"),
            // Only the message tells how it ended.
            (Some(5), closed, gone, "open"),
            (Some(4), closed, gone, "not set"),
            (None, closed, gone, "not set"),
            (Some(4), closed, open, "open"),
            (Some(5), gone, gone, "waits"),
            (Some(5), gone, open, "open"),
            (None, closed, open, "open"),
        ] {
            let (store, client) = RecordingStore::open().await;
            let title = format!(
                "{} and the message {message:?} then {}",
                name(&first),
                name(&second)
            );
            store.title(&title);
            store.answer(Reply::LatchWait(first));
            store.answer(Reply::LatchLook(second));
            for _ in 0..4 {
                store.answer(Reply::LatchWait(second));
            }
            let latch = client.latch("l");
            let waits = async move { latch.wait(of(2700)).await };
            let waits = tokio::spawn(store.ask(2700, waits));
            ms(200).await;
            store.notify_granted(0, message);
            ms(1).await;
            assert_eq!(store.when("look"), [200], "{title}: whatever it says");
            if waits.is_finished() {
                let answer = waits.await.unwrap();
                let answer = answer.map_or_else(|error| short(&error), |()| "open".to_owned());
                assert_eq!(answer, expected, "{title}");
            } else {
                assert_eq!("waits", expected, "{title}");
                waits.abort();
            }
        }
    });
}

#[test]
fn a_message_during_a_look_makes_it_look_again() {
    simulated(async {
        for (reply, message, looks_again) in [
            (state(1, 5, 0), Some(5), true),
            (state(1, 5, 0), None, true),
            (LatchFound::NotSet, Some(5), true),
            (state(0, 5, 0), Some(5), false),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{} and the message {message:?}", name(&reply)));
            for _ in 0..9 {
                store.answer(Reply::LatchWait(reply));
                store.answer(Reply::LatchLook(reply));
            }
            store.next("wait", &[Fate::Replies(100, 0)]);
            let latch = client.latch("l");
            let waits = async move { latch.wait(of(1400)).await };
            let waits = tokio::spawn(store.ask(1400, waits));
            ms(50).await;
            store.seen();
            store.notify_granted(0, message);
            let opens = waits.await.unwrap().is_ok();
            assert_eq!(opens, !looks_again);
            assert_eq!(store.calls().first() == Some(&(100, "look")), looks_again);
        }
    });
}

#[test]
fn a_latch_that_opens_while_the_last_look_is_under_way_is_open() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.answer(Reply::LatchWait(state(1, 5, 0)));
        store.answer(Reply::LatchLook(state(1, 5, 0)));
        store.answer(Reply::LatchLook(state(0, 5, 0)));
        store.next("look", &[Fate::Replies(350, 0)]);
        let latch = client.latch("l");
        let waits = async move { latch.wait(of(700)).await };
        let waits = tokio::spawn(store.ask(700, waits));
        ms(600).await;
        store.notify_granted(0, Some(5));
        waits.await.unwrap().unwrap();
        assert_eq!(store.now(), 700);
    });
}

#[test]
fn a_place_is_given_up_for_as_long_as_the_store_would_keep_it() {
    simulated(async {
        for (fate, last) in [(DOWN, 61_250), (Fate::Fails(StoreErrorKind::Denied), 100)] {
            let (store, client) = RecordingStore::open().await;
            store.ask(WAIT, client.latch("l").set(1)).await.unwrap();
            store.title(format!("{fate:?}"));
            store.set_usual("leave", fate);
            let error = store
                .ask(100, client.latch("l").wait(of(100)))
                .await
                .unwrap_err();
            assert!(matches!(error, LockError::LatchClosed { .. }), "{error}");
            ms(100_000).await;
            assert_eq!(store.when("leave").last(), Some(&last));
        }
    });
}

#[test]
fn one_whose_time_is_over_is_looked_at_when_it_ends() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        other.latch("l").ttl(of(600)).set(1).await.unwrap();
        let latch = client.latch("l");
        let answer = store.ask(5000, latch.wait(of(5000))).await.unwrap_err();
        assert_eq!((short(&answer).as_str(), store.now()), ("not set", 601));
    });
}

#[test]
fn a_look_that_fails_and_then_succeeds_leaves_no_failure() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.other().await.latch("l").set(1).await.unwrap();
        store.next("wait", &[Fate::Passes, DOWN, Fate::Passes, DOWN]);
        let latch = client.latch("l");
        let answer = store.ask(3500, latch.wait(of(3500))).await.unwrap_err();
        assert_eq!(short(&answer), "closed after 3.5s");
        // Each failure is the first again.
        assert_eq!(store.when("wait"), [0, 1000, 1050, 2050, 2100, 3100]);
    });
}

#[test]
fn one_that_has_opened_is_not_looked_at_for_waiters_that_nobody_polls() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        other.latch("l").set(1).await.unwrap();
        let latch = client.latch("l");
        let mut waits = pin!(store.ask(WAIT, latch.wait(of(WAIT))));
        let once = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx)));
        assert!(once.await.is_pending());
        ms(100).await;
        other.latch("l").count_down().await.unwrap();
        ms(100).await;
        store.seen();
        ms(5000).await;
        assert_eq!(store.calls(), []);
        waits.await.unwrap();
    });
}

#[test]
fn a_message_over_another_link_than_the_last_reply_is_not_heard() {
    simulated(async {
        for (link, looks) in [(7, vec![]), (0, vec![(100, "look")])] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("over link {link}"));
            store.other().await.latch("l").set(1).await.unwrap();
            let latch = client.latch("l");
            let mut waits = pin!(store.ask(WAIT, latch.wait(of(WAIT))));
            let once = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx)));
            assert!(once.await.is_pending());
            ms(100).await;
            store.seen();
            store.notify_granted_over(Link(link), 0, None);
            ms(100).await;
            assert_eq!(store.calls(), looks, "link {link}");
        }
    });
}

#[test]
fn a_last_look_that_fails_ends_no_wait_if_a_later_answer_comes() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.other().await.latch("l").set(1).await.unwrap();
        store.next("look", &[DOWN]);
        let tasks = [1, 2].map(|_| {
            let (store, latch) = (Arc::clone(&store), client.latch("l"));
            tokio::spawn(async move { store.ask(3000, latch.wait(of(3000))).await })
        });
        ms(2700).await;
        // One has looked for both, and both wait on.
        assert_eq!(store.when("look"), [2500]);
        store.call_all();
        for task in tasks {
            let error = task.await.unwrap().unwrap_err();
            assert_eq!(short(&error), "closed after 3s");
        }
    });
}

#[test]
fn a_message_while_the_latch_is_looked_at_is_heard_over_any_link() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.other().await.latch("l").set(1).await.unwrap();
        store.next("wait", &[Fate::Replies(0, 7), Fate::Replies(100, 0)]);
        let (asking, latch) = (Arc::clone(&store), client.latch("l"));
        let waits = tokio::spawn(async move { asking.ask(WAIT, latch.wait(of(WAIT))).await });
        ms(1050).await;
        store.seen();
        store.notify_granted_over(Link(0), 0, None);
        ms(100).await;
        assert_eq!(store.calls(), [(1100, "look")]);
        waits.abort();
    });
}

/// At the end of its time the store refuses the call for the first time.
#[test]
fn a_call_whose_time_is_over_is_not_sent_again() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("set", DOWN);
        let latch = client.latch("l");
        let (asking, set) = (Arc::clone(&store), latch.clone());
        let sets = tokio::spawn(async move { asking.ask(WAIT, set.set(1)).await });
        ms(9400).await;
        store.next("set", &[Fate::Replies(500, 0)]);
        let error = sets.await.unwrap().unwrap_err();
        assert_eq!(short(&error), "Timeout, seen by us");
        assert_eq!((store.now(), store.when("set").pop()), (10_000, Some(9500)));
    });
}

#[test]
fn a_call_that_is_polled_again_when_its_time_is_over_is_not_sent_again() {
    simulated(async {
        for (polled, calls) in [(9_999, vec![0, 9_999]), (10_000, vec![0])] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("after {polled}"));
            store.other().await.latch("l").set(9).await.unwrap();
            let latch = client.latch("l");
            store.set_usual("count_down", Fate::Silence);
            let mut call = Box::pin(store.ask(WAIT, latch.count_down()));
            let early = tokio::time::timeout(of(520), &mut call).await;
            assert!(early.is_err(), "it is about to repeat it");
            ms(polled - store.now()).await;
            assert_eq!(short(&call.await.unwrap_err()), "Timeout");
            assert_eq!(store.when("count_down"), calls);
        }
    });
}

#[test]
fn a_wait_that_is_dropped_before_the_store_was_asked_leaves_no_place() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let latch = client.latch("l");
        let mut waits = Box::pin(store.ask(WAIT, latch.wait(of(WAIT))));
        let once = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx)));
        assert!(once.await.is_pending());
        drop(waits);
        ms(100).await;
        assert_eq!(store.calls(), []);
    });
}

#[test]
fn a_message_for_a_wait_that_has_ended_wakes_nobody() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.other().await.latch("l").set(1).await.unwrap();
        let latch = client.latch("l");
        let (asking, waiting) = (Arc::clone(&store), latch.clone());
        let waits = async move { asking.ask(500, waiting.wait(of(500))).await };
        let waits = tokio::spawn(waits);
        ms(100).await;
        let seen = store.seen();
        let place = seen[0].request.latch_call().unwrap().owner;
        let message = HandedOver::new(place, None, Trust::Order(Link(0)));
        let listener = store.listener.lock().unwrap().clone().unwrap();
        assert!(listener.on_granted(message).0.is_some());
        waits.await.unwrap().unwrap_err();
        ms(100).await;
        assert!(listener.on_granted(message).0.is_none());
    });
}

/// One waiter is refused, and is not polled. Then another comes.
#[test]
fn a_refusal_ends_a_row_of_failed_looks() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.other().await.latch("l").set(1).await.unwrap();
        let denied = Fate::Fails(StoreErrorKind::Denied);
        store.next("wait", &[DOWN, denied, DOWN, Fate::Passes]);
        let latch = client.latch("l");
        let mut first = pin!(store.ask(WAIT, latch.wait(of(WAIT))));
        let once = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx)));
        assert!(once.await.is_pending());
        ms(100).await;
        let (asking, waiting) = (Arc::clone(&store), latch.clone());
        let waits = async move { asking.ask(1000, waiting.wait(of(1000))).await };
        let second = tokio::spawn(waits);
        ms(300).await;
        assert_eq!(store.when("wait"), [0, 50, 100, 150]);
        assert_eq!(short(&first.await.unwrap_err()), "Denied");
        let error = second.await.unwrap().unwrap_err();
        assert_eq!(short(&error), "closed after 1s");
    });
}

#[test]
fn a_place_is_given_up_for_the_last_time_when_the_store_has_forgotten_it() {
    simulated(async {
        let settings = |builder: LockClientBuilder| builder.command_timeout(of(425));
        let (store, client) = RecordingStore::open_with(settings).await;
        store.other().await.latch("l").set(1).await.unwrap();
        store.set_usual("leave", DOWN);
        store.next("leave", &[Fate::Silence, Fate::Silence]);
        let error = store.ask(100, client.latch("l").wait(of(100))).await;
        assert_eq!(short(&error.unwrap_err()), "closed after 100ms");
        ms(100_000).await;
        let left = store.when("leave");
        assert_eq!((left[0], left.last()), (100, Some(&60_100)));
    });
}

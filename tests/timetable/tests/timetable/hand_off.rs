//! Holds that pass from one task of a process to the next.

use std::sync::Arc;

use lock_runtime::LockClient;
use lock_store::{Acquired, Busy};
use lock_testkit_core::store_decorator::{Reply, Request};

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};
use crate::schedule::Command;

/// A client that allows long runs of hand-offs.
async fn patient() -> (Arc<RecordingStore>, LockClient) {
    RecordingStore::open_with(|builder| builder.local_tenure(4, of(60_000))).await
}

#[test]
fn a_hold_that_is_released_or_dropped_is_handed_off_without_a_command() {
    simulated(async {
        let (store, client) = patient().await;
        let request = || store.ask(WAIT, client.lock("k").acquire());
        let guard = request().await.unwrap();
        let next = tokio::spawn(request());
        let last = tokio::spawn(request());
        ms(1).await;
        store.seen();
        guard.release().await.unwrap();
        let guard = next.await.unwrap().unwrap();
        drop(guard);
        let guard = last.await.unwrap().unwrap();
        assert_eq!(store.calls(), []);
        drop(guard);
        ms(1).await;
        assert_eq!(store.calls(), [(1, "release")]);
    });
}

#[test]
fn a_permit_is_not_handed_off() {
    simulated(async {
        let (store, client) = patient().await;
        let request = || store.ask(WAIT, client.semaphore("s", 1).permit().acquire());
        let guard = request().await.unwrap();
        let next = tokio::spawn(request());
        ms(1).await;
        store.seen();
        guard.release().await.unwrap();
        let _guard = next.await.unwrap().unwrap();
        // The next one stands in the store's queue, and is handed it there.
        assert_eq!(store.calls(), [(1, "release")]);
    });
}

#[test]
fn a_task_that_is_handed_a_hold_without_a_token_fetches_the_tokens_of_all() {
    simulated(async {
        for (behind, expected) in [(0, 1), (1, 5)] {
            let (store, client) = patient().await;
            store.title(format!("{behind} behind"));
            let first = store.ask(WAIT, client.lock("k").acquire());
            let guard = first.await.unwrap();
            let request = || store.ask(WAIT, client.lock("k").fenced().acquire());
            let next = tokio::spawn(request());
            ms(1).await;
            let others: Vec<_> = (0..behind).map(|_| tokio::spawn(request())).collect();
            ms(1).await;
            store.seen();
            guard.release().await.unwrap();
            let guard = next.await.unwrap().unwrap();
            let seen = store.seen();
            let tokens = |command: &_| match command {
                Request::Acquire(request) => request.tokens,
                other => panic!("{other:?}"),
            };
            let fetched: Vec<_> = seen
                .iter()
                .map(|one| (one.at, tokens(&one.request)))
                .collect();
            assert_eq!(fetched, [(2, expected)]);
            let first = u64::from(guard.fencing_token().unwrap());
            drop(guard);
            for other in others {
                let guard = other.await.unwrap().unwrap();
                assert_eq!(u64::from(guard.fencing_token().unwrap()), first + 1);
            }
        }
    });
}

/// The first task has had the key without a token, so the next one, which wants one, asks the store
/// to end that hold `after` this many milliseconds of its `wait`.
async fn ended_by_the_next(
    wait: u64,
    after: u64,
    meets: impl FnOnce(&RecordingStore),
) -> Arc<RecordingStore> {
    let (store, client) = patient().await;
    let first = store.ask(WAIT, client.lock("k").acquire());
    let guard = first.await.unwrap();
    let next = client.lock("k").fenced().wait(of(wait)).acquire();
    let next = tokio::spawn(store.ask(wait, next));
    ms(after).await;
    store.seen();
    meets(&store);
    guard.release().await.unwrap();
    ms(20_000).await;
    drop(next.await.unwrap());
    store
}

#[test]
fn a_hold_that_a_command_has_ended_is_not_released_once_more() {
    simulated(async {
        let busy = || Reply::Acquire(Acquired::Busy(Busy::new(None, true)));
        let conflict = || Reply::Acquire(Acquired::Conflict);
        for (name, reply) in [("busy", busy()), ("conflict", conflict())] {
            let store = ended_by_the_next(2500, 1, |store| store.answer(reply)).await;
            store.title(name);
            let seen = store.seen();
            let instead: Vec<_> = seen.iter().filter_map(instead_of).collect();
            assert!(instead[0], "{name}");
            assert!(!instead[1..].contains(&true), "{name}");
            assert!(!seen.iter().any(|one| one.verb() == "release"), "{name}");
        }
    });
}

#[test]
fn a_hold_that_a_lost_command_may_not_have_ended_is_released_at_once() {
    simulated(async {
        for (name, wait, after, given_up) in [
            ("in its whole time", 700, 1, 501),
            ("cut short", 400, 90, 500),
        ] {
            let store = ended_by_the_next(wait, after, |store| {
                store.next("acquire", &[Fate::Silence]);
            })
            .await;
            store.title(name);
            let seen = store.seen();
            let release = seen.iter().find(|one| one.verb() == "release");
            assert_eq!(release.map(|one| one.at), Some(given_up), "{name}");
            let instead = seen.iter().filter_map(instead_of);
            assert_eq!(instead.filter(|instead| *instead).count(), 1, "{name}");
        }
    });
}

#[test]
fn a_hold_is_released_if_the_command_that_was_to_end_it_is_given_up() {
    simulated(async {
        let (store, client) = patient().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let next = client.lock("k").fenced().acquire();
        let next = tokio::spawn(store.ask(WAIT, next));
        ms(1).await;
        store.next("acquire", &[Fate::Silence]);
        guard.release().await.unwrap();
        ms(100).await;
        store.seen();
        next.abort();
        ms(1).await;
        assert!(store.calls().contains(&(101, "release")));
    });
}

#[test]
fn a_hold_that_stays_or_that_may_be_undone_is_not_handed_off() {
    simulated(async {
        for stays in [true, false] {
            let (store, client) = patient().await;
            store.title(if stays {
                "it stays"
            } else {
                "it may be undone"
            });
            let mut request = client.lock("k");
            if stays {
                request = request.hold_at_least(of(1000));
            } else {
                store.next("acquire", &[Fate::Lost]);
            }
            let guard = store.ask(WAIT, request.acquire()).await.unwrap();
            let next = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
            ms(100).await;
            store.seen();
            guard.release().await.unwrap();
            let calls = store.calls();
            assert_eq!(calls[0].1, "release", "{calls:?}");
            drop(next.await.unwrap().unwrap());
            ms(100).await;
        }
    });
}

#[test]
fn who_waits_for_a_hold_of_its_process_asks_when_something_was_freed() {
    simulated(async {
        let (store, client) = patient().await;
        let _guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let first = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        let second = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(100).await;
        store.seen();
        store.is_freed("k");
        ms(50).await;
        assert_eq!(store.when("acquire"), [101]);
        first.abort();
        second.abort();
    });
}

#[test]
fn a_hold_that_was_extended_for_longer_than_the_next_one_asked_for_is_not_handed_off() {
    simulated(async {
        // The next one asks a millisecond later for 30 s.
        for (extended, ended) in [(29_000, false), (30_001, false), (90_000, true)] {
            let (store, client) = patient().await;
            store.title(format!("extended for {extended}"));
            let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            guard.extend(of(extended)).await.unwrap();
            let next = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
            ms(1).await;
            store.seen();
            guard.release().await.unwrap();
            drop(next.await.unwrap().unwrap());
            let seen = store.seen();
            let instead = seen.iter().filter_map(instead_of).any(|instead| instead);
            assert_eq!(instead, ended, "{extended}");
            ms(100).await;
        }
    });
}

#[test]
fn what_a_command_has_ended_and_nobody_was_told_of_is_no_failure() {
    simulated(async {
        let store = ended_by_the_next(700, 1, |store| {
            store.next("acquire", &[Fate::Lost]);
        });
        let store = store.await;
        let logged = store.noted("log: ");
        assert!(logged.is_empty(), "{logged:?}");
    });
}

#[test]
fn a_hold_that_nobody_uses_is_released_for_as_long_as_the_store_may_keep_it() {
    simulated(async {
        for (extended, until) in [(None, 30_000), (Some(90_000), 90_000)] {
            let (store, client) = patient().await;
            store.title(format!("extended for {extended:?}"));
            let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            if let Some(extended) = extended {
                guard.extend(of(extended)).await.unwrap();
            }
            let next = client.lock("k").fenced().wait(of(700)).acquire();
            let next = tokio::spawn(store.ask(700, next));
            ms(1).await;
            store.set_usual("acquire", Fate::Silence);
            store.set_usual("release", DOWN);
            guard.release().await.unwrap();
            drop(next.await.unwrap());
            ms(120_000).await;
            let last = *store.when("release").last().unwrap();
            assert!((until - 3000..until + 3000).contains(&last), "{last}");
        }
    });
}

/// Whether the first command that was sent is an acquire that ends another's hold too.
fn begins_with_an_end(seen: &[Command]) -> bool {
    seen.first().and_then(instead_of) == Some(true)
}

#[test]
fn other_processes_have_their_turn_when_the_time_of_a_tenure_is_over_to_the_instant() {
    simulated(async {
        for (released, passed) in [(999, true), (1000, false)] {
            let (store, client) =
                RecordingStore::open_with(|builder| builder.local_tenure(4, of(1000))).await;
            store.title(format!("released at {released}"));
            let request = || store.ask(WAIT, client.lock("k").acquire());
            let guard = request().await.unwrap();
            ms(100).await;
            let next = tokio::spawn(request());
            ms(released - 100).await;
            store.seen();
            guard.release().await.unwrap();
            drop(next.await.unwrap().unwrap());
            assert_eq!(begins_with_an_end(&store.seen()), !passed, "{released}");
            ms(1).await;
        }
    });
}

#[test]
fn other_processes_have_their_turn_at_the_limit_of_handoffs() {
    simulated(async {
        let (store, client) = patient().await;
        let request = || store.ask(WAIT, client.lock("k").acquire());
        let mut guard = request().await.unwrap();
        let waiting: Vec<_> = (0..5).map(|_| tokio::spawn(request())).collect();
        ms(1).await;
        store.seen();
        for (handoffs, next) in waiting.into_iter().enumerate() {
            guard.release().await.unwrap();
            guard = next.await.unwrap().unwrap();
            assert_eq!(begins_with_an_end(&store.seen()), handoffs == 4);
        }
    });
}

#[test]
fn a_hold_with_less_than_half_of_its_lease_left_is_not_handed_off() {
    simulated(async {
        for (released, passed) in [(3300, true), (5000, false)] {
            let (store, client) = patient().await;
            store.title(format!("released at {released}"));
            let first = client.lock("k").lease(of(10_000)).renew(false).acquire();
            let guard = store.ask(WAIT, first).await.unwrap();
            // It waits for a hand-off for a quarter of its wait.
            let next = client.lock("k").lease(of(10_000)).renew(true);
            let next = next.wait(of(40_000));
            let next = tokio::spawn(store.ask(40_000, next.acquire()));
            ms(released).await;
            store.seen();
            guard.release().await.unwrap();
            drop(next.await.unwrap().unwrap());
            assert_eq!(begins_with_an_end(&store.seen()), !passed, "{released}");
            ms(1).await;
        }
    });
}

/// Whether an acquire is also to end another's hold.
fn instead_of(command: &Command) -> Option<bool> {
    match &command.request {
        Request::Acquire(request) => Some(request.instead_of.is_some()),
        _ => None,
    }
}

//! A hold on several locks: renewed together, lost together, released together, shared by nested
//! calls.

use std::time::{Duration, Instant};

use super::RENEWED;
use crate::{Backend, eventually};
use lock_runtime::{Guard, Lock, LockClient, LockError, LostReason, OnLost};

super::on_every_store!(
    all_are_renewed_as_long_as_the_body_runs,
    a_fixed_lease_is_whole_after_a_long_wait_and_ends_all,
    one_lost_key_loses_all_and_frees_the_others_at_once,
    a_loss_names_the_first_key_as_listed,
    a_body_that_goes_on_after_the_loss_keeps_the_others,
    max_hold_ends_all,
    extend_moves_all_and_finds_one_that_is_gone,
    a_panic_or_an_abort_in_the_body_releases_all,
    a_dropped_guard_is_released_before_later_requests_of_its_client,
    hold_at_least_keeps_all,
    one_key_lost_while_another_is_waited_for_is_taken_again,
    one_key_lost_while_another_is_waited_for_is_busy_when_the_wait_ends,
    a_nested_request_shares_if_all_is_held_and_would_deadlock_if_not,
    a_nested_request_can_ask_for_the_first_tokens,
    siblings_inside_exclude_each_other,
    shutdown_ends_waiting_requests_and_holds,
);

super::without_a_queue!(
    a_body_that_goes_on_after_the_loss_keeps_the_others,
    a_dropped_guard_is_released_before_later_requests_of_its_client,
    siblings_inside_exclude_each_other,
);

const SHORT: Duration = Duration::from_millis(100);

/// Runs the test twice: with all keys free at once, and with a wait for the second key.
async fn both_ways<F: Future>(store: &Backend, test: impl Fn(LockClient, Lock, bool) -> F) {
    for gathered in [false, true] {
        let client = store.client().await;
        test(client.clone(), client.multi_lock(["a", "b", "c"]), gathered).await;
        store.until_empty().await;
    }
}

/// Acquires the guard, with a wait for one of the keys if `gathered`.
async fn acquire(other: &LockClient, request: Lock, gathered: bool) -> Guard {
    if !gathered {
        return request.acquire().await.unwrap();
    }
    let held = other.lock("b").acquire().await.unwrap();
    let waiting = tokio::spawn(request.acquire());
    until_waiting(other, "b", 1).await;
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap()
}

async fn until_waiting(client: &LockClient, key: &str, places: usize) {
    eventually("all of them wait", async || {
        client.inspect(key).await.unwrap().waiting == places
    })
    .await;
}

async fn is_free(client: &LockClient, key: &str) -> bool {
    client.inspect(key).await.unwrap().holder.is_none()
}

fn lost_by<T: std::fmt::Debug>(result: Result<T, LockError>) -> LostReason {
    match result {
        Err(LockError::Lost { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn lost_key<T: std::fmt::Debug>(result: Result<T, LockError>) -> String {
    match result {
        Err(LockError::Lost { key, .. }) => key.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

async fn all_are_renewed_as_long_as_the_body_runs(store: Backend) {
    let other = store.client().await;
    both_ways(&store, async |client, request, gathered| {
        let lease = store.renewable(RENEWED);
        let request = request.lease(lease).renew(true);
        let guard = acquire(&other, request, gathered).await;
        assert_eq!(client.health().await.unwrap().held, 1);
        // Longer than the lease.
        for _ in 0..10 {
            tokio::time::sleep(lease / 8).await;
            assert!(guard.is_held());
            for key in ["a", "b", "c"] {
                let taken = other.lock(key).try_acquire().await.unwrap().is_none();
                assert!(taken, "{key}");
            }
        }
        guard.release().await.unwrap();
        assert_eq!(client.health().await.unwrap().held, 0);
    })
    .await;
}

async fn a_fixed_lease_is_whole_after_a_long_wait_and_ends_all(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let lease = Duration::from_secs(2);
    let held = other.lock("c").acquire().await.unwrap();
    let waiting = tokio::spawn(client.multi_lock(["a", "b", "c"]).lease(lease).acquire());
    until_waiting(&other, "c", 1).await;
    // Longer than the lease of the keys that it already has.
    tokio::time::sleep(lease * 3 / 2).await;
    for key in ["a", "b"] {
        assert!(!is_free(&other, key).await, "{key}");
    }
    let before = Instant::now();
    held.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    let missing = lease.saturating_sub(guard.remaining());
    assert!(
        missing < before.elapsed() + SHORT,
        "{missing:?} of the lease are missing"
    );
    // The lease is fixed: the hold is not renewed.
    tokio::time::timeout(lease * 5, guard.lost()).await.unwrap();
    assert!(before.elapsed() < lease * 3, "{:?}", before.elapsed());
    assert_eq!(lost_by(guard.release().await), LostReason::Expired);
    store.until_empty().await;
}

async fn one_lost_key_loses_all_and_frees_the_others_at_once(store: Backend) {
    let other = store.client().await;
    both_ways(&store, async |client, request, gathered| {
        for gone in ["a", "b", "c"] {
            let request = request.clone().lease(Duration::from_secs(6)).renew(true);
            let guard = acquire(&other, request, gathered).await;
            let body = tokio::spawn(async move {
                let lost = tokio::time::timeout(Duration::from_secs(30), guard.lost());
                lost.await.expect("it is lost with any of them");
                drop(guard);
            });
            other.force_release(gone).await.unwrap();
            body.await.unwrap();
            let lost = Instant::now();
            eventually("the others are free", async || store.leftovers().await == 0).await;
            assert!(lost.elapsed() < Duration::from_secs(3), "not by the lease");
        }
        assert_eq!(client.health().await.unwrap().lost, 3);
        // And under `run` the body is cancelled.
        let (dropped, seen) = tokio::sync::oneshot::channel::<()>();
        let request = request.lease(Duration::from_secs(3)).renew(true);
        let (began, begun) = tokio::sync::oneshot::channel();
        let body = tokio::spawn(request.run(async move {
            let _dropped = dropped;
            began.send(()).unwrap();
            std::future::pending::<()>().await;
        }));
        // Not as soon as the store has the hold: replicas may have to confirm it first.
        begun.await.unwrap();
        other.force_release("c").await.unwrap();
        assert_eq!(lost_by(body.await.unwrap()), LostReason::Gone);
        assert!(seen.await.is_err(), "the body was dropped");
        for key in ["a", "b"] {
            let next = other.lock(key).wait(Duration::from_secs(1)).acquire().await;
            next.unwrap().release().await.unwrap();
        }
    })
    .await;
}

async fn a_loss_names_the_first_key_as_listed(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let request = client.multi_lock(["c", "a", "b"]);
    let lease = Duration::from_secs(1);
    let expires = request.clone().lease(lease);
    let cancelled = expires.clone().run(std::future::pending::<()>()).await;
    assert_eq!(lost_key(cancelled), "c");
    let ended_late = expires.run(async { std::thread::sleep(lease * 3 / 2) });
    assert_eq!(lost_key(ended_late.await), "c");
    let guard = request.clone().acquire().await.unwrap();
    let nested = guard.scope(client.multi_lock(["b", "a"]).acquire());
    let nested = nested.await.unwrap();
    other.force_release("a").await.unwrap();
    assert_eq!(lost_key(guard.extend(lease).await), "c");
    assert_eq!(lost_key(guard.extend(lease).await), "c");
    assert_eq!(lost_key(nested.release().await), "b");
    assert_eq!(lost_key(guard.release().await), "c");
    let guard = request.acquire().await.unwrap();
    other.force_release("a").await.unwrap();
    assert_eq!(lost_key(guard.release().await), "c");
}

async fn a_body_that_goes_on_after_the_loss_keeps_the_others(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let request = client.multi_lock(["a", "b"]).on_lost(OnLost::Continue);
    let request = request.lease(Duration::from_secs(3)).renew(true);
    let body = async |guard: &Guard| {
        other.force_release("b").await.unwrap();
        guard.lost().await;
        assert!(!is_free(&other, "a").await, "it may work on still");
    };
    request.run_with(body).await.unwrap();
    store.until_empty().await;
}

async fn max_hold_ends_all(store: Backend) {
    let other = store.client().await;
    both_ways(&store, async |_, request, gathered| {
        let lease = store.renewable(RENEWED);
        let request = request.lease(lease).renew(true).max_hold(lease * 4 / 3);
        let started = Instant::now();
        let guard = acquire(&other, request, gathered).await;
        guard.lost().await;
        assert!(started.elapsed() > lease * 7 / 6, "it was renewed");
        assert_eq!(lost_by(guard.release().await), LostReason::MaxHold);
        for key in ["a", "b", "c"] {
            drop(other.lock(key).acquire().await.unwrap());
        }
    })
    .await;
}

async fn extend_moves_all_and_finds_one_that_is_gone(store: Backend) {
    let other = store.client().await;
    both_ways(&store, async |_, request, gathered| {
        let guard = acquire(&other, request.lease(Duration::from_secs(5)), gathered).await;
        guard.extend(Duration::from_secs(60)).await.unwrap();
        assert!(guard.remaining() > Duration::from_secs(50));
        for key in ["a", "b", "c"] {
            let left = other.inspect(key).await.unwrap().remaining;
            store.check_rest(left, |left| left > Duration::from_secs(50));
        }
        other.force_release("c").await.unwrap();
        assert_eq!(lost_by(guard.extend(SHORT).await), LostReason::Gone);
        assert!(!guard.is_held());
    })
    .await;
}

async fn a_panic_or_an_abort_in_the_body_releases_all(store: Backend) {
    let other = store.client().await;
    both_ways(&store, async |client, request, gathered| {
        let guard = acquire(&other, request, gathered).await;
        let panics = tokio::spawn(async move {
            let _guard = guard;
            panic!("on purpose");
        });
        assert!(panics.await.unwrap_err().is_panic());
        let again = client.multi_lock(["c", "b", "a"]).try_acquire().await;
        drop(again.unwrap().expect("free at once for the same client"));
        let body = tokio::spawn(
            client
                .multi_lock(["a", "b"])
                .run(std::future::pending::<()>()),
        );
        eventually("it is held", async || !is_free(&other, "b").await).await;
        body.abort();
        assert!(body.await.unwrap_err().is_cancelled());
        let again = client.multi_lock(["a", "b"]).try_acquire().await;
        drop(again.unwrap().expect("free at once for the same client"));
    })
    .await;
}

async fn a_dropped_guard_is_released_before_later_requests_of_its_client(store: Backend) {
    let client = store.client().await;
    for round in 0..100 {
        let guard = client.multi_lock(["a", "b"]).try_acquire().await.unwrap();
        drop(guard.unwrap_or_else(|| panic!("busy in round {round}")));
        let single = client.lock("b").try_acquire().await.unwrap();
        drop(single.unwrap_or_else(|| panic!("single busy in round {round}")));
        let waits = client.multi_lock(["b", "a"]).acquire().await.unwrap();
        drop(waits);
    }
    store.until_empty().await;
}

async fn hold_at_least_keeps_all(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let keep = Duration::from_secs(60);
    let job = client.multi_lock(["a", "b"]).hold_at_least(keep);
    job.run(async {}).await.unwrap();
    for key in ["a", "b"] {
        assert!(other.lock(key).try_acquire().await.unwrap().is_none());
        let left = other.inspect(key).await.unwrap().remaining;
        store.check_rest(left, |left| left > keep / 2 && left <= keep);
        assert!(client.force_release(key).await.unwrap());
    }
    // After a wait, the minimum time counts from the end of the wait, and only then.
    let held = other.lock("b").acquire().await.unwrap();
    let job = client.multi_lock(["a", "b"]).hold_at_least(keep);
    let waiting = tokio::spawn(job.wait(Duration::from_secs(3)).run(async {}));
    until_waiting(&other, "b", 1).await;
    let gave_up = waiting.await.unwrap();
    assert!(matches!(gave_up, Err(LockError::Busy { .. })));
    eventually("the first is free", async || is_free(&other, "a").await).await;
    held.release().await.unwrap();
    store.until_empty().await;
}

async fn one_key_lost_while_another_is_waited_for_is_taken_again(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let held = other.lock("b").acquire().await.unwrap();
    let waiting = tokio::spawn(client.multi_lock(["a", "b"]).acquire());
    until_waiting(&other, "b", 1).await;
    other.force_release("a").await.unwrap();
    let taken = other.lock("a").acquire().await.unwrap();
    held.release().await.unwrap();
    // The request finds the loss, gives back what it got, and waits for the first key again.
    until_waiting(&other, "a", 1).await;
    eventually("the second is free", async || is_free(&other, "b").await).await;
    assert!(!waiting.is_finished());
    taken.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.is_held());
    for key in ["a", "b"] {
        assert!(other.lock(key).try_acquire().await.unwrap().is_none());
    }
    guard.release().await.unwrap();
    store.until_empty().await;
}

async fn one_key_lost_while_another_is_waited_for_is_busy_when_the_wait_ends(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let held = other.lock("b").acquire().await.unwrap();
    let request = client.multi_lock(["a", "b"]).wait(Duration::from_secs(5));
    let waiting = tokio::spawn(request.acquire());
    until_waiting(&other, "b", 1).await;
    other.force_release("a").await.unwrap();
    let taken = other.lock("a").acquire().await.unwrap();
    held.release().await.unwrap();
    match waiting.await.unwrap() {
        Err(LockError::Busy { key, .. }) => assert_eq!(key.as_str(), "a"),
        result => panic!("{result:?}"),
    }
    assert!(taken.is_held());
    taken.release().await.unwrap();
    store.until_empty().await;
}

async fn a_nested_request_shares_if_all_is_held_and_would_deadlock_if_not(store: Backend) {
    let other = store.client().await;
    both_ways(&store, async |client, request, gathered| {
        let outer = acquire(&other, request.fenced(), gathered).await;
        let tokens = outer.fencing_tokens().unwrap();
        let nested = async |keys: &[&'static str]| {
            let request = client.multi_lock(keys.to_vec()).fenced();
            outer.scope(request.wait_forever().acquire()).await
        };
        for keys in [&["a", "b", "c"][..], &["c", "a"], &["b"], &["c", "c"]] {
            let inner = nested(keys).await.unwrap();
            let place = |key: &str| match key {
                "a" => 0,
                "b" => 1,
                _ => 2,
            };
            let expected: Vec<_> = keys.iter().map(|key| tokens[place(key)]).collect();
            assert_eq!(inner.fencing_tokens(), Some(expected));
            assert!(
                inner
                    .keys()
                    .map(|key| key.as_str())
                    .eq(keys.iter().copied())
            );
            inner.release().await.unwrap();
        }
        let single = outer.scope(client.lock("b").fenced().acquire()).await;
        assert_eq!(single.unwrap().fencing_token(), Some(tokens[1]));
        for keys in [&["a", "b", "c", "d"][..], &["d", "b"], &["0", "c"]] {
            match nested(keys).await {
                Err(LockError::WouldDeadlock { key, .. }) => {
                    assert!(["a", "b", "c"].contains(&key.as_str()), "{key} is not held");
                }
                result => panic!("{result:?}"),
            }
        }
        // The hold has none of these keys, so this is a request of its own.
        drop(nested(&["x", "y"]).await.unwrap());
        let alone = client.multi_lock(["a", "b"]).reentrant(false).acquire();
        let alone = outer.scope(alone).await;
        assert!(matches!(alone, Err(LockError::WouldDeadlock { .. })));
        assert!(outer.is_held());
        outer.release().await.unwrap();
        // Under a hold of one of them, the rest would be waited for in any order.
        let one = client.lock("b").acquire().await.unwrap();
        match one.scope(client.multi_lock(["a", "b"]).acquire()).await {
            Err(LockError::WouldDeadlock { key, .. }) => assert_eq!(key.as_str(), "b"),
            result => panic!("{result:?}"),
        }
        let read = client.rw_lock("r").read().acquire().await.unwrap();
        match read.scope(client.multi_lock(["q", "r"]).acquire()).await {
            Err(LockError::KeyConflict { key, .. }) => assert_eq!(key.as_str(), "r"),
            result => panic!("{result:?}"),
        }
    })
    .await;
}

async fn a_nested_request_can_ask_for_the_first_tokens(store: Backend) {
    let client = store.client().await;
    let outer = client.multi_lock(["a", "b"]).acquire().await.unwrap();
    assert_eq!(outer.fencing_tokens(), None);
    let inner = outer.scope(client.multi_lock(["b", "a"]).fenced().acquire());
    let inner = inner.await.unwrap();
    let mut tokens = inner.fencing_tokens().unwrap();
    tokens.reverse();
    assert_eq!(outer.fencing_tokens(), Some(tokens));
    drop(inner);
    outer.release().await.unwrap();
}

async fn siblings_inside_exclude_each_other(store: Backend) {
    let client = store.client().await;
    let outer = client.multi_lock(["a", "b"]).acquire().await.unwrap();
    let inside = std::sync::atomic::AtomicU32::new(0);
    let sibling = async |keys: &[&'static str]| {
        let request = client.multi_lock(keys.to_vec());
        let guard = request.acquire().await.unwrap();
        let others = inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(others, 0, "a sibling is inside");
        tokio::time::sleep(Duration::from_millis(5)).await;
        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
        guard.release().await.unwrap();
    };
    outer
        .scope(async {
            tokio::join!(sibling(&["a", "b"]), sibling(&["b"]), sibling(&["b", "a"]));
        })
        .await;
}

async fn shutdown_ends_waiting_requests_and_holds(store: Backend) {
    for gathered in [false, true] {
        let (client, other) = (store.client().await, store.client().await);
        let guard = acquire(&other, client.multi_lock(["a", "b"]), gathered).await;
        let held = other.lock("z").acquire().await.unwrap();
        let waiting = tokio::spawn(client.multi_lock(["y", "z"]).wait_forever().acquire());
        until_waiting(&other, "z", 1).await;
        let shutdown = tokio::spawn({
            let client = client.clone();
            async move { client.shutdown(Duration::from_secs(5)).await }
        });
        let refused = waiting.await.unwrap();
        assert!(matches!(refused, Err(LockError::Shutdown)), "{refused:?}");
        assert!(guard.is_held(), "bodies have until the timeout");
        let new = client.multi_lock(["n", "m"]).try_acquire().await;
        assert!(matches!(new, Err(LockError::Shutdown)), "{new:?}");
        shutdown.await.unwrap();
        assert_eq!(lost_by(guard.release().await), LostReason::Shutdown);
        for key in ["a", "b", "y"] {
            assert!(is_free(&other, key).await, "{key}");
        }
        held.release().await.unwrap();
        store.until_empty().await;
    }
}

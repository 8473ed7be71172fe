//! Count-down latches: waiters go on when the latch has been counted down, and not before.

use std::time::{Duration, Instant};

use crate::{Backend, eventually, polled};
use lock_runtime::{Latch, LockClient, LockError};
use tokio::task::{JoinHandle, JoinSet};

super::on_every_store!(
    a_latch_is_set_once_until_it_opens,
    a_latch_of_zero_or_with_an_impossible_ttl_is_refused,
    counting_stops_at_zero,
    a_hundred_calls_of_three_clients_count_a_hundred,
    a_latch_that_is_not_set_can_not_be_counted_down,
    a_wait_before_it_is_set_lasts_until_it_opens,
    a_wait_after_it_opened_ends_at_once,
    five_waiters_in_two_clients_all_go_on,
    a_wait_that_is_over_is_busy,
    wait_zero_is_one_look,
    a_wait_dropped_after_any_number_of_polls_leaves_nothing,
    a_wait_that_gives_up_leaves_nothing,
    a_latch_that_expires_during_a_wait_is_lost,
    an_open_latch_expires_too,
    a_latch_that_has_opened_can_be_used_again,
    a_latch_set_again_as_soon_as_it_opens_lets_every_waiter_through,
    a_later_waiter_is_not_let_through_by_the_last_generation,
    a_lock_is_no_latch_and_a_latch_is_no_lock,
    an_unusable_key_is_reported,
    a_client_that_is_shut_down_tells_at_once_and_leaves_nothing,
    a_latch_works_where_the_callers_time_is_paused,
    the_longest_of_all_timeouts_is_no_panic,
);

const LONG: Duration = Duration::from_secs(60);

fn waiting(latch: &Latch, timeout: Duration) -> JoinHandle<Result<(), LockError>> {
    let latch = latch.clone();
    tokio::spawn(async move { latch.wait(timeout).await })
}

/// The number of places in the store, one for each client. Only a client with a place is sure to
/// hear of a latch that is set again at once.
async fn places(store: &Backend) -> usize {
    let places = "lock:%latch:{lock:k}";
    match store.server_of(places).await {
        Some(server) => server.query::<usize>(&["ZCARD", places]).await,
        // One of the leftovers is the latch itself.
        None => store.leftovers().await - 1,
    }
}

/// Waits until this client has `tasks` waiting tasks, and the store `left` places and latches.
async fn until_waiting(store: &Backend, client: &LockClient, tasks: usize, left: usize) {
    eventually("they wait", async || {
        client.health().await.unwrap().waiting == tasks && store.leftovers().await == left
    })
    .await;
}

fn not_set<T: std::fmt::Debug>(result: Result<T, LockError>) {
    match result {
        Err(LockError::LatchNotSet { key, .. }) => assert_eq!(key.as_str(), "k"),
        other => panic!("{other:?}"),
    }
}

async fn a_latch_is_set_once_until_it_opens(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let (a, b) = (a.latch("k"), b.latch("k"));
    assert_eq!(a.count().await.unwrap(), None);
    assert!(a.set(2).await.unwrap());
    assert!(!a.set(3).await.unwrap());
    assert!(!b.set(4).await.unwrap());
    assert_eq!(b.count().await.unwrap(), Some(2));
    b.count_down().await.unwrap();
    assert!(!b.set(4).await.unwrap());
    b.count_down().await.unwrap();
    assert!(b.set(4).await.unwrap());
    assert_eq!(a.count().await.unwrap(), Some(4));
}

async fn a_latch_of_zero_or_with_an_impossible_ttl_is_refused(store: Backend) {
    let client = store.client().await;
    let latch = client.latch("k");
    let day = Duration::from_secs(24 * 60 * 60);
    let ms = Duration::from_millis(1);
    for refused in [
        latch.set(0).await,
        latch.clone().ttl(9 * ms).set(1).await,
        latch.clone().ttl(day + ms).set(1).await,
    ] {
        assert!(
            matches!(refused, Err(LockError::Config { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(latch.count().await.unwrap(), None);
    assert!(latch.clone().ttl(day).set(u32::MAX).await.unwrap());
    assert_eq!(latch.count_down().await.unwrap(), u32::MAX - 1);
}

async fn counting_stops_at_zero(store: Backend) {
    let latch = store.client().await.latch("k");
    latch.set(3).await.unwrap();
    for left in [2, 1, 0, 0, 0] {
        assert_eq!(latch.count_down().await.unwrap(), left);
        assert_eq!(latch.count().await.unwrap(), Some(left));
    }
}

async fn a_hundred_calls_of_three_clients_count_a_hundred(store: Backend) {
    let mut calls = JoinSet::new();
    let latch = store.client().await.latch("k");
    latch.set(100).await.unwrap();
    let waiting = waiting(&latch, LONG);
    for client in 0..3 {
        let latch = store.client().await.latch("k");
        for _ in (client..100).step_by(3) {
            let latch = latch.clone();
            calls.spawn(async move { latch.count_down().await.unwrap() });
        }
    }
    let mut left = calls.join_all().await;
    left.sort_unstable();
    assert_eq!(left, (0..100).collect::<Vec<_>>());
    waiting.await.unwrap().unwrap();
}

async fn a_latch_that_is_not_set_can_not_be_counted_down(store: Backend) {
    let latch = store.client().await.latch("k");
    let error = latch.count_down().await;
    let text = error.as_ref().unwrap_err().to_string();
    assert!(text.contains("\"k\"") && text.contains("set it"), "{text}");
    not_set(error);
    assert_eq!(store.leftovers().await, 0);
}

async fn a_wait_before_it_is_set_lasts_until_it_opens(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let waiter = waiting(&a.latch("k"), LONG);
    until_waiting(&store, &a, 1, 1).await;
    b.latch("k").set(1).await.unwrap();
    // And a waiter that knows that the latch is set.
    let second = waiting(&a.latch("k"), LONG);
    until_waiting(&store, &a, 2, 2).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(!waiter.is_finished() && !second.is_finished());
    b.latch("k").count_down().await.unwrap();
    for waiter in [waiter, second] {
        waiter.await.unwrap().unwrap();
    }
}

async fn a_wait_after_it_opened_ends_at_once(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    a.latch("k").set(1).await.unwrap();
    a.latch("k").count_down().await.unwrap();
    for client in [&a, &b] {
        for timeout in [Duration::ZERO, Duration::from_millis(1), LONG] {
            client.latch("k").wait(timeout).await.unwrap();
        }
        client.latch("k").wait_forever().await.unwrap();
    }
    until_waiting(&store, &b, 0, 1).await;
}

async fn five_waiters_in_two_clients_all_go_on(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    a.latch("k").set(2).await.unwrap();
    let mut waiters: Vec<_> = [&a, &a, &a, &b]
        .into_iter()
        .map(|client| waiting(&client.latch("k"), LONG))
        .collect();
    let forever = b.latch("k");
    waiters.push(tokio::spawn(async move { forever.wait_forever().await }));
    until_waiting(&store, &a, 3, if is_redis(&store) { 2 } else { 3 }).await;
    until_waiting(&store, &b, 2, if is_redis(&store) { 2 } else { 3 }).await;
    b.latch("k").count_down().await.unwrap();
    assert!(!waiters.iter().any(JoinHandle::is_finished));
    a.latch("k").count_down().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    // The latch stays, the places go.
    until_waiting(&store, &a, 0, 1).await;
    until_waiting(&store, &b, 0, 1).await;
}

/// `leftovers` counts one key for all places in Redis.
fn is_redis(store: &Backend) -> bool {
    store.counts_latch_places_once()
}

async fn a_wait_that_is_over_is_busy(store: Backend) {
    let client = store.client().await;
    for set in [false, true] {
        if set {
            client.latch("k").set(1).await.unwrap();
        }
        let (started, timeout) = (Instant::now(), Duration::from_millis(300));
        match client.latch("k").wait(timeout).await {
            Err(LockError::LatchClosed { key, waited, .. }) => {
                assert_eq!(key.as_str(), "k");
                assert!(waited >= timeout, "{waited:?}");
            }
            other => panic!("{other:?}"),
        }
        assert!(started.elapsed() >= timeout);
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

async fn wait_zero_is_one_look(store: Backend) {
    let latch = store.client().await.latch("k");
    for count in [None, Some(1)] {
        if let Some(count) = count {
            latch.set(count).await.unwrap();
        }
        let busy = latch.wait(Duration::ZERO).await;
        assert!(
            matches!(busy, Err(LockError::LatchClosed { .. })),
            "{busy:?}"
        );
    }
    latch.count_down().await.unwrap();
    latch.wait(Duration::ZERO).await.unwrap();
    assert_eq!(store.leftovers().await, 1);
}

async fn a_wait_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let gone = async || {
        store.until_empty().await;
        assert_eq!(client.health().await.unwrap().waiting, 0);
    };
    // Not set; or opened during the wait, so that the drop races with the message.
    for opened in [false, true] {
        for round in 0..3 {
            for polls in 0.. {
                let latch = client.latch("k");
                let wait = latch.wait(Duration::from_millis(20 + round));
                let (output, ()) = tokio::join!(polled(polls, wait), async {
                    let latch = other.latch("k").ttl(Duration::from_millis(100));
                    if opened {
                        latch.set(1).await.unwrap();
                        match latch.count_down().await {
                            // Its time may be over before a slow server counts.
                            Ok(0) | Err(LockError::LatchNotSet { .. }) => {}
                            other => panic!("{other:?}"),
                        }
                    }
                });
                gone().await;
                match output {
                    Some(Ok(())) => assert!(opened),
                    Some(Err(LockError::LatchClosed { .. })) => {}
                    Some(Err(error)) => panic!("{error}"),
                    None => continue,
                }
                break;
            }
        }
    }
    eventually("only the clients' channels are left", async || {
        store.channels().await <= 2
    })
    .await;
}

async fn a_wait_that_gives_up_leaves_nothing(store: Backend) {
    let client = store.client().await;
    let busy = client.latch("k").wait(Duration::from_millis(50)).await;
    assert!(
        matches!(busy, Err(LockError::LatchClosed { .. })),
        "{busy:?}"
    );
    store.until_empty().await;
    // A request that gives up does not take the place of one that stays.
    let stays = waiting(&client.latch("k"), LONG);
    until_waiting(&store, &client, 1, 1).await;
    let busy = client.latch("k").wait(Duration::from_millis(50)).await;
    assert!(
        matches!(busy, Err(LockError::LatchClosed { .. })),
        "{busy:?}"
    );
    assert_eq!(store.leftovers().await, 1);
    stays.abort();
    store.until_empty().await;
    assert_eq!(client.health().await.unwrap().waiting, 0);
}

async fn a_latch_that_expires_during_a_wait_is_lost(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    // Long enough for all to wait before it ends.
    let latch = a.latch("k").ttl(Duration::from_secs(3));
    latch.set(1).await.unwrap();
    let waiters = [&a, &b, &b].map(|client| waiting(&client.latch("k"), LONG));
    for waiter in waiters {
        not_set(waiter.await.unwrap());
    }
    not_set(latch.count_down().await);
    assert_eq!(latch.count().await.unwrap(), None);
    store.until_empty().await;
}

async fn an_open_latch_expires_too(store: Backend) {
    let client = store.client().await;
    // Long enough to open it before it ends.
    let latch = client.latch("k").ttl(Duration::from_secs(3));
    latch.set(1).await.unwrap();
    latch.count_down().await.unwrap();
    store.until_empty().await;
    let busy = latch.wait(Duration::from_millis(50)).await;
    assert!(
        matches!(busy, Err(LockError::LatchClosed { .. })),
        "{busy:?}"
    );
}

async fn a_latch_that_has_opened_can_be_used_again(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    for count in 1..5 {
        assert!(a.latch("k").set(count).await.unwrap());
        let waiters = [&a, &b].map(|client| waiting(&client.latch("k"), LONG));
        until_waiting(&store, &a, 1, if is_redis(&store) { 2 } else { 3 }).await;
        until_waiting(&store, &b, 1, if is_redis(&store) { 2 } else { 3 }).await;
        assert!(!waiters.iter().any(JoinHandle::is_finished));
        for left in (0..count).rev() {
            assert_eq!(b.latch("k").count_down().await.unwrap(), left);
        }
        for waiter in waiters {
            waiter.await.unwrap().unwrap();
        }
        until_waiting(&store, &a, 0, 1).await;
    }
}

async fn a_latch_set_again_as_soon_as_it_opens_lets_every_waiter_through(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let c = store.client().await;
    let latch = a.latch("k");
    latch.set(1).await.unwrap();
    for _ in 0..50 {
        let waiters = [&a, &b, &c].map(|client| waiting(&client.latch("k"), LONG));
        eventually("the store knows them", async || places(&store).await == 3).await;
        let (opened, set) = tokio::join!(latch.count_down(), latch.set(1));
        assert_eq!(opened.unwrap(), 0);
        if !set.unwrap() {
            assert!(latch.set(1).await.unwrap());
        }
        for waiter in waiters {
            waiter.await.unwrap().unwrap();
        }
        // A later request waits for the next generation.
        let busy = b.latch("k").wait(Duration::ZERO).await;
        assert!(
            matches!(busy, Err(LockError::LatchClosed { .. })),
            "{busy:?}"
        );
        until_waiting(&store, &b, 0, 1).await;
    }
}

async fn a_later_waiter_is_not_let_through_by_the_last_generation(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let (latch, other) = (a.latch("k"), b.latch("k"));
    other.set(1).await.unwrap();
    // A waiter whose task stands still while the latch opens and is set again.
    let mut stands_still = Box::pin(latch.wait(LONG));
    tokio::select! {
        result = &mut stands_still => panic!("{result:?}"),
        () = until_waiting(&store, &a, 1, 2) => {}
    }
    other.count_down().await.unwrap();
    other.set(1).await.unwrap();
    let busy = latch.wait(Duration::from_millis(50)).await;
    assert!(
        matches!(busy, Err(LockError::LatchClosed { .. })),
        "{busy:?}"
    );
    stands_still.await.unwrap();
}

async fn a_lock_is_no_latch_and_a_latch_is_no_lock(store: Backend) {
    let client = store.client().await;
    let conflict = |result: Result<(), LockError>| match result {
        Err(LockError::KeyConflict { key, .. }) => assert_eq!(key.as_str(), "k"),
        other => panic!("{other:?}"),
    };
    let latch = client.latch("k");
    let held = client.lock("k").acquire().await.unwrap();
    conflict(latch.set(1).await.map(drop));
    conflict(latch.count_down().await.map(drop));
    conflict(latch.count().await.map(drop));
    conflict(latch.wait(LONG).await);
    conflict(latch.wait(Duration::ZERO).await);
    conflict(latch.wait_forever().await);
    assert!(held.is_held());
    held.release().await.unwrap();
    latch.set(1).await.unwrap();
    for _opened in [false, true] {
        conflict(client.lock("k").acquire().await.map(drop));
        conflict(client.lock("k").fenced().acquire().await.map(drop));
        conflict(client.lock("k").fair().acquire().await.map(drop));
        conflict(client.multi_lock(["a", "k"]).acquire().await.map(drop));
        conflict(client.inspect("k").await.map(drop));
        conflict(client.force_release("k").await.map(drop));
        let busy = client.lock("k").try_acquire().await;
        assert!(
            matches!(busy, Ok(None) | Err(LockError::KeyConflict { .. })),
            "{busy:?}"
        );
        latch.count_down().await.unwrap();
        assert_eq!(latch.count().await.unwrap(), Some(0));
    }
}

async fn an_unusable_key_is_reported(store: Backend) {
    let client = store.client().await;
    for key in ["", "%latch", "a{b", &"k".repeat(513)] {
        let latch = client.latch(key);
        for result in [
            latch.set(1).await.map(drop),
            latch.count_down().await.map(drop),
            latch.count().await.map(drop),
            latch.wait(LONG).await,
            latch.wait_forever().await,
        ] {
            assert!(
                matches!(result, Err(LockError::InvalidKey { .. })),
                "{result:?}"
            );
        }
    }
    let tagged = client.latch("{tenant}:k");
    tagged.set(1).await.unwrap();
    assert_eq!(tagged.count_down().await.unwrap(), 0);
    tagged.wait(LONG).await.unwrap();
}

async fn a_client_that_is_shut_down_tells_at_once_and_leaves_nothing(store: Backend) {
    let client = store.client().await;
    let latch = client.latch("k");
    let mut waiters: Vec<_> = (0..5).map(|_| waiting(&latch, LONG)).collect();
    let forever = latch.clone();
    waiters.push(tokio::spawn(async move { forever.wait_forever().await }));
    until_waiting(&store, &client, 6, 1).await;
    let started = Instant::now();
    client.shutdown(LONG).await;
    assert_eq!(store.leftovers().await, 0, "it waited until they had left");
    for waiter in waiters {
        let result = waiter.await.unwrap();
        assert!(matches!(result, Err(LockError::Shutdown)), "{result:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(10));
    for result in [
        latch.set(1).await.map(drop),
        latch.count_down().await.map(drop),
        latch.count().await.map(drop),
        latch.wait(LONG).await,
        latch.wait(Duration::ZERO).await,
    ] {
        assert!(matches!(result, Err(LockError::Shutdown)), "{result:?}");
    }
}

async fn a_latch_works_where_the_callers_time_is_paused(store: Backend) {
    let client = store.client().await;
    let latch = client.latch("k");
    let paused = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let started = Instant::now();
        let outcome = runtime.block_on(async {
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            let waiting = latch.wait(Duration::from_millis(300));
            tokio::pin!(waiting);
            loop {
                // A paused clock runs ahead whenever nothing else is ready.
                tokio::select! {
                    outcome = &mut waiting => return outcome,
                    _ = ticks.tick() => {}
                }
            }
        });
        (outcome, started.elapsed())
    });
    let (outcome, elapsed) = paused.join().unwrap();
    assert!(
        matches!(outcome, Err(LockError::LatchClosed { .. })),
        "{outcome:?}"
    );
    assert!(elapsed >= Duration::from_millis(300), "{elapsed:?}");
}

async fn the_longest_of_all_timeouts_is_no_panic(store: Backend) {
    let client = store.client().await;
    let waiter = waiting(&client.latch("k"), Duration::MAX);
    until_waiting(&store, &client, 1, 1).await;
    client.latch("k").set(1).await.unwrap();
    client.latch("k").count_down().await.unwrap();
    waiter.await.unwrap().unwrap();
    let refused = client.latch("k").ttl(Duration::MAX).set(1).await;
    assert!(matches!(refused, Err(LockError::Config { .. })));
}

//! A limited number of permits over all clients, in the order of arrival. Leases and losses are in
//! `semaphore_holds.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::{Guard, Lock, LockClient, LockError, distributed_lock};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

super::on_every_store!(
    as_many_are_inside_as_there_are_permits_and_no_more,
    permits_of_several_clients_are_never_exceeded,
    with_one_permit_holders_exclude_each_other,
    impossible_numbers_are_refused_with_what_to_write,
    as_many_permits_as_can_be_asked_for,
    waiters_of_several_clients_are_served_in_arrival_order,
    a_request_for_two_waits_until_both_are_free,
    a_big_request_is_not_starved_and_the_small_ones_behind_it_wait,
    a_waiting_big_request_that_gives_up_or_is_dropped_lets_the_smaller_ones_in_at_once,
    a_waiting_big_request_whose_client_is_gone_delays_no_other,
    a_waiting_big_request_whose_client_is_shut_down_lets_the_smaller_ones_in_at_once,
    each_request_is_admitted_by_its_own_number,
    a_request_with_a_smaller_number_is_not_starved_by_larger_ones,
    a_nested_request_may_say_another_number,
    five_run_an_annotated_function_at_once_and_the_sixth_waits,
    an_inspection_says_how_many_permits_are_taken_and_left,
);

pub(in crate::conformance) const WAIT: Duration = Duration::from_secs(60);
/// Shorter than the fallback poll: a request granted sooner was not granted by looking again.
pub(in crate::conformance) const AT_ONCE: Duration = Duration::from_millis(700);

pub(in crate::conformance) fn permits(client: &LockClient, permits: u32, of: u32) -> Lock {
    client.semaphore("k", of).permits(permits).wait(WAIT)
}

pub(in crate::conformance) async fn is_busy(request: Lock) -> bool {
    request.try_acquire().await.unwrap().is_none()
}

pub(in crate::conformance) async fn until_waiting(client: &LockClient, places: usize) {
    eventually("all of them wait", async || {
        client.inspect("k").await.unwrap().waiting == places
    })
    .await;
}

/// Starts to acquire. Returns when the request has the place number `place` in the store's queue.
pub(in crate::conformance) async fn queued(
    watcher: &LockClient,
    request: Lock,
    place: usize,
) -> JoinHandle<Result<Guard, LockError>> {
    let waiter = tokio::spawn(request.acquire());
    until_waiting(watcher, place).await;
    waiter
}

/// The guard of a waiter that must be served at once.
pub(in crate::conformance) async fn served(waiter: JoinHandle<Result<Guard, LockError>>) -> Guard {
    let started = Instant::now();
    let guard = waiter.await.unwrap().unwrap();
    let took = started.elapsed();
    assert!(took < AT_ONCE, "{took:?}: told, not found by a poll");
    guard
}

pub(in crate::conformance) async fn three(store: &Backend) -> (LockClient, LockClient, LockClient) {
    let client = async || store.client().await;
    (client().await, client().await, client().await)
}

async fn as_many_are_inside_as_there_are_permits_and_no_more(store: Backend) {
    let (a, b, c) = three(&store).await;
    let one = permits(&a, 1, 5).acquire().await.unwrap();
    let three = permits(&b, 3, 5).acquire().await.unwrap();
    assert!(
        is_busy(permits(&c, 2, 5)).await,
        "all or none of the permits"
    );
    let last = permits(&c, 1, 5).acquire().await.unwrap();
    for client in [&a, &b, &c] {
        assert!(is_busy(permits(client, 1, 5)).await);
    }
    let brief = Duration::from_millis(300);
    let started = Instant::now();
    match permits(&a, 2, 5).wait(brief).acquire().await {
        Err(LockError::Busy { key, waited, .. }) => {
            assert_eq!(key.as_str(), "k");
            assert!(waited >= brief && started.elapsed() < brief + AT_ONCE);
        }
        other => panic!("{other:?}"),
    }
    // Another key, and another namespace, is another semaphore.
    assert!(!is_busy(a.semaphore("other", 5).permit()).await);
    let elsewhere = store.builder().namespace("other").connect().await.unwrap();
    assert!(!is_busy(permits(&elsewhere, 5, 5)).await);
    three.release().await.unwrap();
    let three = permits(&a, 3, 5).acquire().await.unwrap();
    drop((one, three, last));
    let all = permits(&b, 5, 5).acquire().await.unwrap();
    assert!(is_busy(permits(&a, 1, 5)).await);
    all.release().await.unwrap();
    store.until_empty().await;
}

/// `clients` clients, each with eight tasks. Returns the most permits that were out at once.
async fn contended(store: &Backend, clients: u32, of: u32) -> u32 {
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..clients * 8 {
        let client = store.client().await;
        let (inside, most) = (inside.clone(), most.clone());
        tasks.spawn(async move {
            for round in 0..12 {
                let wants = (number + round) % of + 1;
                let body = async {
                    let out = inside.fetch_add(wants, Ordering::SeqCst) + wants;
                    assert!(out <= of, "{out} permits of {of}");
                    most.fetch_max(out, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    inside.fetch_sub(wants, Ordering::SeqCst);
                };
                let request = permits(&client, wants, of);
                // Some guards are dropped, some released.
                if round % 3 == 0 {
                    let guard = request.acquire().await.unwrap();
                    body.await;
                    drop(guard);
                } else {
                    request.run(body).await.unwrap();
                }
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    store.until_empty().await;
    most.load(Ordering::SeqCst)
}

async fn permits_of_several_clients_are_never_exceeded(store: Backend) {
    let most = contended(&store, 2, 4).await;
    assert_eq!(most, 4, "all of them were used");
}

async fn with_one_permit_holders_exclude_each_other(store: Backend) {
    assert_eq!(contended(&store, 1, 1).await, 1);
}

async fn impossible_numbers_are_refused_with_what_to_write(store: Backend) {
    let client = store.client().await;
    let last = u32::try_from(i32::MAX).unwrap() - 1;
    for (wants, of, words) in [
        (
            0,
            5,
            ["0 permits are asked for", "at least 1 and at most 5"],
        ),
        (
            6,
            5,
            ["6 permits are asked for", "at least 1 and at most 5"],
        ),
        (u32::MAX, 5, ["4294967295 permits", "at most 5"]),
        (1, 0, ["has 0 permits", "from 1 to 2147483646"]),
        (0, 0, ["has 0 permits", "from 1 to 2147483646"]),
        (1, last + 1, ["has 2147483647 permits", "2147483646"]),
        (u32::MAX, u32::MAX, ["has 4294967295 permits", "2147483646"]),
    ] {
        let request = permits(&client, wants, of);
        for result in [
            request.clone().acquire().await.map(drop),
            request.clone().try_acquire().await.map(drop),
            request.run(async { panic!("it ran") }).await,
        ] {
            let Err(error @ LockError::Config { .. }) = result else {
                panic!("{wants} of {of}: {result:?}");
            };
            let text = error.to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }
    assert_eq!(store.leftovers().await, 0, "nothing was sent");
}

async fn as_many_permits_as_can_be_asked_for(store: Backend) {
    let (a, b, c) = three(&store).await;
    let of = u32::try_from(i32::MAX).unwrap() - 1;
    let most = permits(&a, of - 1, of).acquire().await.unwrap();
    let last = permits(&b, 1, of).acquire().await.unwrap();
    assert!(is_busy(permits(&c, 1, of)).await);
    let all = queued(&a, permits(&c, of, of), 1).await;
    most.release().await.unwrap();
    assert!(
        is_busy(permits(&a, 1, of)).await,
        "all of them are waited for"
    );
    last.release().await.unwrap();
    let all = served(all).await;
    assert!(is_busy(permits(&a, 1, of)).await);
    all.release().await.unwrap();
    store.until_empty().await;
}

async fn waiters_of_several_clients_are_served_in_arrival_order(store: Backend) {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(store.client().await);
    }
    let holder = permits(&clients[0], 1, 3).acquire().await.unwrap();
    let turns = Arc::new(AtomicU32::new(0));
    let mut waiters = JoinSet::new();
    for number in 0..16 {
        let (client, turns) = (&clients[number % 4], turns.clone());
        // No two of these fit at once, and small ones could go first.
        let wants = if number % 3 == 0 { 3 } else { 2 };
        waiters.spawn(permits(client, wants, 3).run(async move {
            assert_eq!(turns.fetch_add(1, Ordering::SeqCst) as usize, number);
        }));
        until_waiting(&clients[0], number + 1).await;
    }
    holder.release().await.unwrap();
    while let Some(waiter) = waiters.join_next().await {
        waiter.unwrap().unwrap();
    }
    assert_eq!(turns.load(Ordering::SeqCst), 16);
    store.until_empty().await;
}

async fn a_request_for_two_waits_until_both_are_free(store: Backend) {
    let (a, b, c) = three(&store).await;
    let one = permits(&a, 1, 2).acquire().await.unwrap();
    let other = permits(&b, 1, 2).acquire().await.unwrap();
    let both = queued(&a, permits(&c, 2, 2), 1).await;
    one.release().await.unwrap();
    // Longer than the fallback poll: looking again does not let it in either.
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert!(!both.is_finished());
    other.release().await.unwrap();
    assert!(served(both).await.is_held());
}

async fn a_big_request_is_not_starved_and_the_small_ones_behind_it_wait(store: Backend) {
    let (a, b, c) = three(&store).await;
    let one = permits(&a, 1, 3).acquire().await.unwrap();
    let other = permits(&b, 1, 3).acquire().await.unwrap();
    let big = queued(&a, permits(&c, 3, 3), 1).await;
    // One permit is free all the time.
    assert!(is_busy(permits(&a, 1, 3)).await && is_busy(permits(&b, 1, 3)).await);
    let small = [
        queued(&a, permits(&a, 1, 3), 2).await,
        queued(&a, permits(&c, 1, 3), 3).await,
    ];
    one.release().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert!(!big.is_finished() && small.iter().all(|one| !one.is_finished()));
    other.release().await.unwrap();
    let big = served(big).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(small.iter().all(|one| !one.is_finished()));
    big.release().await.unwrap();
    for one in small {
        assert!(served(one).await.is_held());
    }
    store.until_empty().await;
}

async fn a_waiting_big_request_that_gives_up_or_is_dropped_lets_the_smaller_ones_in_at_once(
    store: Backend,
) {
    let (a, b, c) = three(&store).await;
    let _holder = permits(&a, 1, 4).acquire().await.unwrap();
    for gives_up in [true, false] {
        // Long enough for the others to queue behind it.
        let wait = if gives_up {
            Duration::from_secs(3)
        } else {
            WAIT
        };
        let big = queued(&a, permits(&b, 4, 4).wait(wait), 1).await;
        // Two of them fit beside the holder, in their order. The third does not.
        let two = queued(&a, permits(&c, 2, 4), 2).await;
        let one = queued(&a, permits(&b, 1, 4), 3).await;
        let third = queued(&a, permits(&c, 1, 4), 4).await;
        if gives_up {
            let result = big.await.unwrap();
            assert!(matches!(result, Err(LockError::Busy { .. })), "{result:?}");
        } else {
            big.abort();
        }
        let (two, one) = (served(two).await, served(one).await);
        assert!(!third.is_finished());
        one.release().await.unwrap();
        served(third).await.release().await.unwrap();
        two.release().await.unwrap();
    }
}

async fn a_waiting_big_request_whose_client_is_gone_delays_no_other(store: Backend) {
    let (a, gone, c) = three(&store).await;
    let _holder = permits(&a, 1, 3).acquire().await.unwrap();
    let big = queued(&a, permits(&gone, 3, 3), 1).await;
    let small = queued(&a, permits(&c, 1, 3), 2).await;
    big.abort();
    drop(gone);
    let started = Instant::now();
    assert!(small.await.unwrap().unwrap().is_held());
    assert!(started.elapsed() < Duration::from_secs(2));
}

async fn a_waiting_big_request_whose_client_is_shut_down_lets_the_smaller_ones_in_at_once(
    store: Backend,
) {
    let (a, ends, c) = three(&store).await;
    let _holder = permits(&a, 1, 3).acquire().await.unwrap();
    let big = queued(&a, permits(&ends, 3, 3), 1).await;
    let small = [
        queued(&a, permits(&c, 1, 3), 2).await,
        queued(&a, permits(&c, 1, 3), 3).await,
    ];
    ends.shutdown(Duration::ZERO).await;
    let ended = Instant::now();
    for one in small {
        assert!(one.await.unwrap().unwrap().is_held());
    }
    assert!(
        ended.elapsed() < Duration::from_millis(700),
        "{:?}: not by a poll",
        ended.elapsed()
    );
    assert!(big.await.unwrap().is_err());
}

async fn each_request_is_admitted_by_its_own_number(store: Backend) {
    let (a, b, c) = three(&store).await;
    let old = permits(&a, 3, 5).acquire().await.unwrap();
    let new = permits(&b, 2, 6).acquire().await.unwrap();
    assert!(is_busy(permits(&a, 1, 5)).await, "five of five are taken");
    let last = permits(&b, 1, 6).try_acquire().await.unwrap();
    let last = last.expect("five of six are taken");
    assert!(is_busy(permits(&b, 1, 6)).await);
    // A hold is renewed and released by the number that it was taken with.
    old.extend(Duration::from_secs(40)).await.unwrap();
    new.release().await.unwrap();
    assert!(is_busy(permits(&c, 2, 5)).await, "four of five are taken");
    assert!(!is_busy(permits(&c, 1, 5)).await);
    last.release().await.unwrap();
    old.release().await.unwrap();
    store.until_empty().await;
}

async fn a_request_with_a_smaller_number_is_not_starved_by_larger_ones(store: Backend) {
    let (a, b, c) = three(&store).await;
    let (one, two) = (
        permits(&a, 1, 6).acquire().await.unwrap(),
        permits(&a, 2, 6).acquire().await.unwrap(),
    );
    let small = queued(&a, permits(&b, 1, 2), 1).await;
    // Three of six are taken, and the first of the queue wants one of two.
    let large = queued(&a, permits(&c, 1, 6), 2).await;
    one.release().await.unwrap();
    assert!(!small.is_finished() && !large.is_finished());
    two.release().await.unwrap();
    let (small, large) = (served(small).await, served(large).await);
    small.release().await.unwrap();
    large.release().await.unwrap();
    store.until_empty().await;
}

async fn a_nested_request_may_say_another_number(store: Backend) {
    let client = store.client().await;
    let outer = permits(&client, 2, 5).acquire().await.unwrap();
    let nested = outer.scope(permits(&client, 2, 6).acquire()).await.unwrap();
    nested.release().await.unwrap();
    let more = outer.scope(permits(&client, 3, 6).acquire()).await;
    assert!(
        matches!(more, Err(LockError::WouldDeadlock { .. })),
        "{more:?}"
    );
    outer.release().await.unwrap();
}

#[distributed_lock(key = "k", permits = 5, wait = "60s", client = client)]
async fn download(
    client: &LockClient,
    inside: &AtomicU32,
    go: &Semaphore,
) -> Result<(), LockError> {
    assert!(inside.fetch_add(1, Ordering::SeqCst) < 5, "a sixth");
    go.acquire().await.unwrap().forget();
    inside.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

async fn five_run_an_annotated_function_at_once_and_the_sixth_waits(store: Backend) {
    let (a, b, _) = three(&store).await;
    let state = Arc::new((AtomicU32::new(0), Semaphore::new(0)));
    let mut running = JoinSet::new();
    for number in 0..6 {
        let (client, state) = ([&a, &b][number % 2].clone(), state.clone());
        running.spawn(async move { download(&client, &state.0, &state.1).await });
    }
    until_waiting(&a, 1).await;
    eventually("five are inside", async || {
        state.0.load(Ordering::SeqCst) == 5
    })
    .await;
    state.1.add_permits(1);
    until_waiting(&a, 0).await;
    state.1.add_permits(5);
    while let Some(one) = running.join_next().await {
        one.unwrap().unwrap();
    }
    store.until_empty().await;
}

async fn an_inspection_says_how_many_permits_are_taken_and_left(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let found = async || {
        let found = b.inspect("k").await.unwrap();
        (found.permits_taken, found.permits_left)
    };
    assert_eq!(found().await, (None, None));
    let three = permits(&a, 3, 5).acquire().await.unwrap();
    assert_eq!(found().await, (Some(3), Some(2)));
    let short = permits(&b, 2, 5).lease(Duration::from_secs(2));
    let two = short.acquire().await.unwrap();
    assert_eq!(found().await, (Some(5), Some(0)));
    // One whose lease has ended, which nobody has removed yet.
    two.lost().await;
    eventually("its permits are back", async || {
        found().await == (Some(3), Some(2))
    })
    .await;
    // By the number of the last request.
    let one = permits(&b, 1, 9).acquire().await.unwrap();
    assert_eq!(found().await, (Some(4), Some(5)));
    one.release().await.unwrap();
    three.release().await.unwrap();
    drop(two);
    // Other kinds of locks have none.
    let _reader = a.rw_lock("k").read().wait(WAIT).acquire().await.unwrap();
    assert_eq!(found().await, (None, None));
    let _alone = a.lock("alone").acquire().await.unwrap();
    let alone = b.inspect("alone").await.unwrap();
    assert_eq!((alone.permits_taken, alone.permits_left), (None, None));
}

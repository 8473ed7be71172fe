//! Readers' and writers' leases against each other, and futures that are dropped. `rw_lock.rs` has
//! more of both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::{Lock, LockClient, LockError};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::RENEWED;
use super::semaphore::{AT_ONCE, WAIT, is_busy, queued, three, until_waiting};
use crate::polled;

super::on_every_store!(
    readers_of_two_clients_enter_together_when_a_writers_lease_ends,
    a_reader_that_leaves_early_delays_no_request_for_the_rest_of_its_lease,
    a_nested_reader_makes_its_outer_hold_no_longer,
    readers_and_writers_that_wait_in_turns_are_served_in_arrival_order,
    a_key_with_a_hash_tag_is_a_key_like_any_other_and_nothing_stays_behind,
    any_future_dropped_after_any_number_of_polls_leaves_nothing,
    a_downgrade_dropped_after_any_number_of_polls_is_finished_by_the_next_one,
);

/// Long enough for the others to come before it ends.
const OF_THE_DEAD: Duration = Duration::from_secs(3);

fn read(client: &LockClient) -> Lock {
    client.rw_lock("k").read().wait(WAIT)
}

fn write(client: &LockClient) -> Lock {
    client.rw_lock("k").write().wait(WAIT)
}

async fn readers_of_two_clients_enter_together_when_a_writers_lease_ends(store: Backend) {
    let (a, b, c) = three(&store).await;
    let lease = OF_THE_DEAD;
    let from = Instant::now();
    // It will be neither released nor renewed.
    let dead = write(&a).lease(lease).acquire().await.unwrap();
    let all = Arc::new(Barrier::new(4));
    let mut readers = JoinSet::new();
    for client in [&b, &c, &b] {
        let all = all.clone();
        readers.spawn(read(client).run(async move { _ = all.wait().await }));
    }
    until_waiting(&a, 3).await;
    all.wait().await;
    let took = from.elapsed();
    assert!(took >= lease && !dead.is_held(), "{took:?}");
    assert!(took < lease + Duration::from_millis(1500), "{took:?}");
    while let Some(reader) = readers.join_next().await {
        reader.unwrap().unwrap();
    }
    drop(dead);
    store.until_empty().await;
}

async fn a_reader_that_leaves_early_delays_no_request_for_the_rest_of_its_lease(store: Backend) {
    let (a, b, c) = three(&store).await;
    let lease = OF_THE_DEAD;
    let from = Instant::now();
    let dead = read(&a).lease(lease).acquire().await.unwrap();
    let later = read(&b).lease(30 * lease).acquire().await.unwrap();
    let writer = queued(&c, write(&c), 1).await;
    later.release().await.unwrap();
    let writer = writer.await.unwrap().unwrap();
    let took = from.elapsed();
    assert!(took >= lease && took < lease + Duration::from_millis(1500));
    assert!(writer.is_held() && !dead.is_held());
}

async fn a_nested_reader_makes_its_outer_hold_no_longer(store: Backend) {
    let (a, b, _) = three(&store).await;
    let lease = OF_THE_DEAD;
    for outer in [read(&a), write(&a)] {
        let from = Instant::now();
        let outer = outer.lease(lease).acquire().await.unwrap();
        let nested = read(&a).lease(30 * lease);
        let nested = outer.scope(nested.acquire()).await.unwrap();
        let writer = write(&b).acquire().await.unwrap();
        assert!(from.elapsed() < lease + Duration::from_millis(1500));
        assert!(!outer.is_held() && !nested.is_held());
        for late in [nested.release().await, outer.release().await] {
            assert!(matches!(late, Err(LockError::Lost { .. })), "{late:?}");
        }
        assert!(writer.is_held() && is_busy(read(&a)).await);
        writer.release().await.unwrap();
    }
    store.until_empty().await;
}

async fn readers_and_writers_that_wait_in_turns_are_served_in_arrival_order(store: Backend) {
    let (a, b, c) = three(&store).await;
    let held = write(&a).acquire().await.unwrap();
    let mut waiters = Vec::new();
    for number in 0..12 {
        let client = [&a, &b, &c][number % 3];
        // `fair` changes nothing here.
        let request = match number % 4 {
            0 => read(client),
            1 => write(client),
            2 => read(client).fair(),
            _ => write(client).fair(),
        };
        waiters.push(queued(&a, request, number + 1).await);
    }
    held.release().await.unwrap();
    // Each reader stands between two writers, so they get in one by one.
    while !waiters.is_empty() {
        let guard = waiters.remove(0).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        guard.release().await.unwrap();
    }
    store.until_empty().await;
}

async fn a_key_with_a_hash_tag_is_a_key_like_any_other_and_nothing_stays_behind(store: Backend) {
    let (a, b, c) = three(&store).await;
    let key = "{tenant}:k";
    let reader = |client: &LockClient| client.rw_lock(key).read();
    let permit = |client: &LockClient| client.semaphore(key, 10).permit();
    for request in [&reader as &dyn Fn(&LockClient) -> Lock, &permit] {
        let all = Arc::new(Barrier::new(10));
        let mut together = JoinSet::new();
        for number in 0..10 {
            let (client, all) = ([&a, &b][number % 2], all.clone());
            let body = async move { _ = all.wait().await };
            together.spawn(request(client).wait(WAIT).fenced().run(body));
        }
        while let Some(one) = together.join_next().await {
            one.unwrap().unwrap();
        }
        let held = request(&a).lease(WAIT).acquire().await.unwrap();
        assert_eq!(c.inspect(key).await.unwrap().holders, 1);
        held.release().await.unwrap();
    }
    let waiting = a.rw_lock(key).write().acquire().await.unwrap();
    let reader = tokio::spawn(b.rw_lock(key).read().wait(WAIT).acquire());
    eventually("it waits", async || {
        c.inspect(key).await.unwrap().waiting == 1
    })
    .await;
    let released = Instant::now();
    waiting.release().await.unwrap();
    reader.await.unwrap().unwrap().release().await.unwrap();
    assert!(released.elapsed() < AT_ONCE, "{:?}", released.elapsed());
    for client in [&a, &b, &c] {
        let health = client.health().await.unwrap();
        assert_eq!((health.held, health.waiting), (0, 0));
    }
    store.until_empty().await;
    drop((a, b, c));
    eventually("their channels are gone", async || {
        store.channels().await == 0
    })
    .await;
}

async fn any_future_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let client = store.client().await;
    for round in 0..12 {
        for polls in 0.. {
            let request = [read(&client), write(&client)][round % 2].clone();
            let complete = match round / 2 {
                0 => polled(polls, request.acquire()).await.is_some(),
                1 => polled(polls, request.fenced().try_acquire())
                    .await
                    .is_some(),
                2 => polled(polls, request.run(tokio::task::yield_now()))
                    .await
                    .is_some(),
                3 => {
                    let guard = request.acquire().await.unwrap();
                    polled(polls, guard.release()).await.is_some()
                }
                4 => {
                    // A nested request must give back its share, and no more than that.
                    let outer = write(&client).acquire().await.unwrap();
                    let nested = async {
                        let complete = polled(polls, request.acquire()).await.is_some();
                        let free = write(&client).try_acquire().await.unwrap();
                        assert!(free.is_some(), "after {polls} polls");
                        complete
                    };
                    outer.scope(nested).await
                }
                _ => {
                    // A request that waits behind a reader.
                    let held = read(&client).acquire().await.unwrap();
                    let brief = request.wait(Duration::from_millis(20));
                    let complete = polled(polls, brief.acquire()).await.is_some();
                    held.release().await.unwrap();
                    complete
                }
            };
            let free = write(&client).try_acquire().await.unwrap();
            let free = free.unwrap_or_else(|| panic!("it is taken after {polls} polls"));
            free.release().await.unwrap();
            store.until_empty().await;
            if complete {
                break;
            }
        }
    }
    let health = client.health().await.unwrap();
    assert_eq!((health.held, health.waiting), (0, 0));
}

async fn a_downgrade_dropped_after_any_number_of_polls_is_finished_by_the_next_one(store: Backend) {
    let (a, b, _) = three(&store).await;
    let lease = store.renewable(RENEWED);
    // Downgraded or not, it is held and renewed, and no writer comes between.
    for polls in 0.. {
        let guard = write(&a).acquire().await.unwrap();
        let complete = polled(polls, guard.downgrade()).await.is_some();
        assert!(is_busy(write(&b)).await);
        guard.downgrade().await.unwrap();
        assert!(!is_busy(read(&b)).await, "after {polls} polls: {guard:?}");
        assert!(is_busy(write(&b)).await, "after {polls} polls: {guard:?}");
        guard.release().await.unwrap();
        store.until_empty().await;
        if complete {
            break;
        }
    }
    let mut guards = Vec::new();
    for polls in 0.. {
        let lock = a.rw_lock(format!("k{polls}")).write();
        let guard = lock.lease(lease).renew(true).acquire().await.unwrap();
        let complete = polled(polls, guard.downgrade()).await.is_some();
        guards.push(guard);
        if complete {
            break;
        }
    }
    tokio::time::sleep(lease + lease / 3).await;
    for (polls, guard) in guards.into_iter().enumerate() {
        assert!(guard.is_held(), "after {polls} polls");
        guard.release().await.unwrap();
    }
    store.until_empty().await;
}

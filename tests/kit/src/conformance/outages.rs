//! A store that stands still, and one that crashes: never "busy", and used again when it is back.

use std::time::Duration;

use super::verbs::{Two, is_granted, owner, request};
use crate::{Backend, eventually};
use lock_runtime::{Guard, LockClient, LockError, LostReason};
use lock_store::{Instant, Queue};

super::on_every_store!(
    a_store_that_stands_still_is_unavailable_and_never_busy,
    a_hold_that_can_not_be_renewed_is_lost_before_its_lease_ends_in_the_store,
    a_store_that_crashed_is_unavailable_and_used_again_when_it_is_back,
    those_who_wait_go_on_when_a_store_that_stood_still_goes_on,
    a_leader_is_stopped_by_a_crash_of_the_store_and_leads_again_when_it_is_back,
    what_an_undo_could_not_end_ends_all_the_same,
);

const LEASE: Duration = Duration::from_secs(2);

/// A client that soon says that the store does not answer. What it did not learn the outcome of it
/// forgets when the lease has ended.
async fn impatient(store: &Backend) -> LockClient {
    impatient_with(store, LEASE).await
}

async fn impatient_with(store: &Backend, lease: Duration) -> LockClient {
    let timeout = store.patience() * Duration::from_millis(300);
    let builder = store.builder().command_timeout(timeout).lease(lease);
    // A server that has just come back may be slow for longer than the default of 2 s.
    let builder = builder.unavailable_after(Duration::from_secs(20));
    builder.connect().await.unwrap()
}

fn assert_unavailable<T: std::fmt::Debug>(result: Result<T, LockError>) {
    match result {
        Err(LockError::Unavailable { .. }) => {}
        other => panic!("{other:?}"),
    }
}

async fn a_store_that_stands_still_is_unavailable_and_never_busy(store: Backend) {
    let client = impatient(&store).await;
    // Of a taken key as of a free one.
    let held = store.client().await.lock("held").acquire().await.unwrap();
    assert!(store.pause());
    for key in ["free", "held"] {
        assert_unavailable(client.lock(key).wait(Duration::ZERO).acquire().await);
        let waits = client.lock(key).wait(Duration::from_secs(1));
        assert_unavailable(waits.acquire().await);
    }
    assert_unavailable(client.health().await);
    store.resume();
    // Members of a cluster may elect a leader first, and refuse who comes meanwhile.
    let other = store.builder().connect_lazy().unwrap();
    eventually("the store serves again", async || {
        other.lock("another").run(async {}).await.is_ok()
    })
    .await;
    // Then whoever comes connects at once.
    let new = store.client().await;
    new.lock("another").run(async {}).await.unwrap();
    let free = client.lock("free").wait(Duration::from_secs(30));
    free.acquire().await.unwrap().release().await.unwrap();
    // It was renewed again, or is lost by now; in either case its key becomes free.
    let _ = held.release().await;
    store.until_empty().await;
}

async fn a_hold_that_can_not_be_renewed_is_lost_before_its_lease_ends_in_the_store(store: Backend) {
    // A hundredth of it is more than a machine under load needs to tell a task.
    let lease = 4 * LEASE;
    let client = impatient_with(&store, lease).await;
    let began = std::time::Instant::now();
    let (started, starts) = tokio::sync::oneshot::channel();
    let lock = client.lock("k");
    let body = tokio::spawn(async move {
        let mut worked = began;
        let body = async {
            started.send(()).unwrap();
            loop {
                worked = std::time::Instant::now();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let result: Result<(), LockError> = lock.run(body).await;
        (result, worked, std::time::Instant::now())
    });
    starts.await.unwrap();
    assert!(store.pause());
    let paused = began.elapsed();
    let (result, worked, told) = body.await.unwrap();
    match result {
        Err(LockError::Lost { reason, .. }) => assert_eq!(reason, LostReason::NotRenewed),
        other => panic!("{other:?}"),
    }
    // Nothing that was sent before the pause can have prolonged it further.
    for at in [worked, told] {
        assert!(at - began < paused + lease, "{:?}", at - began);
    }
    store.resume();
    let next = client.lock("k").wait(Duration::from_secs(30));
    next.acquire().await.unwrap().release().await.unwrap();
}

async fn a_store_that_crashed_is_unavailable_and_used_again_when_it_is_back(store: Backend) {
    let client = impatient(&store).await;
    client
        .lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert!(store.kill());
    assert_unavailable(client.lock("k").wait(Duration::ZERO).acquire().await);
    let waits = client.lock("k").wait(Duration::from_millis(500));
    assert_unavailable(waits.acquire().await);
    assert_unavailable(client.health().await);
    store.restart().await;
    let back = client.lock("k").wait(Duration::from_secs(30));
    back.acquire().await.unwrap().release().await.unwrap();
    store.until_empty().await;
}

async fn those_who_wait_go_on_when_a_store_that_stood_still_goes_on(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let held = a.lock("k").acquire().await.unwrap();
    let (asked, asks) = tokio::sync::oneshot::channel();
    let waiter = tokio::spawn(async move {
        asked.send(()).unwrap();
        let lock = b.lock("k").wait(Duration::from_secs(60));
        lock.acquire().await.unwrap().release().await
    });
    asks.await.unwrap();
    assert!(store.pause());
    let release = tokio::spawn(held.release());
    tokio::task::yield_now().await;
    store.resume();
    release.await.unwrap().unwrap();
    waiter.await.unwrap().unwrap();
    store.until_empty().await;
}

async fn a_leader_is_stopped_by_a_crash_of_the_store_and_leads_again_when_it_is_back(
    store: Backend,
) {
    // Long enough to see the other one wait before the leader's lease can end.
    let lease = 3 * LEASE;
    let (leader, other) = (
        impatient_with(&store, lease).await,
        impatient_with(&store, lease).await,
    );
    let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
    for (number, client) in [(1, leader.clone()), (2, other.clone())] {
        let began = began.clone();
        tokio::spawn(client.lock("k").lead(async move |_: &Guard| {
            began.send(number).unwrap();
            std::future::pending::<()>().await
        }));
    }
    let first = begins.recv().await.unwrap();
    let (leader, other) = if first == 1 {
        (leader, other)
    } else {
        (other, leader)
    };
    eventually("the other one waits", async || other.stats().waiting == 1).await;
    assert!(store.kill());
    eventually("the leader is stopped", async || leader.stats().lost == 1).await;
    // Longer than any single request waits for a dead store.
    eventually("each has been refused", async || {
        leader.stats().unavailable > 0 && other.stats().unavailable > 0
    })
    .await;
    assert!(begins.try_recv().is_err(), "nobody leads without a store");
    store.restart().await;
    let again = tokio::time::timeout(Duration::from_secs(30), begins.recv()).await;
    assert!(again.unwrap().is_some());
    for client in [leader, other] {
        client.shutdown(Duration::ZERO).await;
    }
    store.until_empty().await;
}

/// The acquire and its undo are sent to a store that stands still, and the undo is not repeated:
/// what the acquire makes when the store goes on is not to stay for as long as its client lives.
async fn what_an_undo_could_not_end_ends_all_the_same(store: Backend) {
    let two = Two::new(&store);
    assert!(is_granted(
        two.acquire(owner(0, 1), false, Queue::Join).await
    ));
    two.release(owner(0, 1)).await;
    assert!(store.pause());
    let lost = request(owner(0, 2), false, Queue::Barge);
    let soon = || Instant::now() + Duration::from_millis(200);
    let own = &two.stores[0];
    assert!(own.acquire(lost.clone(), soon()).await.is_err());
    assert!(own.abandon(lost, soon()).await.is_err());
    store.resume();
    eventually("the store serves again", async || {
        let by = Instant::now() + Duration::from_secs(1);
        own.ping(by).await.is_ok()
    })
    .await;
    store.until_empty().await;
}

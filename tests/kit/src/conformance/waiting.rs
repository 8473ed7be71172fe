//! First come, first served. No request waits longer than asked, and none is forgotten.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::LockError;

super::on_every_store!(
    waiters_of_one_process_are_served_in_arrival_order,
    fair_waiters_of_several_clients_are_served_in_arrival_order,
    a_waiter_that_gives_up_leaves_no_place_in_the_queue,
    wait_zero_is_one_try_and_wait_forever_waits,
    a_client_that_is_gone_does_not_hold_up_the_queue,
    time_paused_in_the_callers_runtime_changes_nothing,
    the_longest_of_all_durations_is_for_ever_and_no_panic,
);

super::without_a_queue!(
    wait_zero_is_one_try_and_wait_forever_waits,
    waiters_of_one_process_are_served_in_arrival_order,
    time_paused_in_the_callers_runtime_changes_nothing,
);

async fn served_in_order(store: &Backend, clients: usize, fair: bool) {
    let mut all = Vec::new();
    for _ in 0..clients {
        all.push(store.client().await);
    }
    let served = Arc::new(Mutex::new(Vec::new()));
    let first = all[0].lock("k").acquire().await.unwrap();
    let mut waiters = Vec::new();
    for number in 0..20 {
        let client = &all[number % clients];
        let request = client.lock("k").wait_forever();
        let (request, served) = (if fair { request.fair() } else { request }, served.clone());
        waiters.push(tokio::spawn(async move {
            let guard = request.acquire().await.unwrap();
            served.lock().unwrap().push(number);
            guard.release().await.unwrap();
        }));
        eventually("it stands in line", async || {
            if fair {
                client.inspect("k").await.unwrap().waiting == number + 1
            } else {
                client.health().await.unwrap().waiting == number + 1
            }
        })
        .await;
    }
    first.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), (0..20).collect::<Vec<_>>());
    store.until_empty().await;
}

async fn waiters_of_one_process_are_served_in_arrival_order(store: Backend) {
    served_in_order(&store, 1, false).await;
}

async fn fair_waiters_of_several_clients_are_served_in_arrival_order(store: Backend) {
    served_in_order(&store, 4, true).await;
}

async fn a_waiter_that_gives_up_leaves_no_place_in_the_queue(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let held = a.lock("k").acquire().await.unwrap();
    let started = Instant::now();
    let gave_up = b.lock("k").wait(Duration::from_millis(100)).acquire().await;
    assert!(
        matches!(gave_up, Err(LockError::Busy { .. })),
        "{gave_up:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(5));
    let dropped = tokio::spawn(b.lock("k").acquire());
    eventually("it queues", async || {
        a.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    dropped.abort();
    eventually("the queue is empty", async || {
        a.inspect("k").await.unwrap().waiting == 0
    })
    .await;
    held.release().await.unwrap();
    store.until_empty().await;
    assert_eq!(b.health().await.unwrap().waiting, 0);
}

async fn wait_zero_is_one_try_and_wait_forever_waits(store: Backend) {
    let (a, b) = (
        store.client().await,
        store
            .builder()
            .wait(Duration::from_millis(50))
            .connect()
            .await
            .unwrap(),
    );
    let held = a.lock("k").acquire().await.unwrap();
    assert!(matches!(
        b.lock("k").wait(Duration::ZERO).acquire().await,
        Err(LockError::Busy { .. })
    ));
    let waiter = tokio::spawn(b.lock("k").wait_forever().acquire());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(
        !waiter.is_finished(),
        "the client's own wait does not count"
    );
    held.release().await.unwrap();
    assert!(waiter.await.unwrap().unwrap().is_held());
}

async fn a_client_that_is_gone_does_not_hold_up_the_queue(store: Backend) {
    let (a, gone, c) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let held = a.lock("k").acquire().await.unwrap();
    let first = tokio::spawn(gone.lock("k").acquire());
    eventually("the first queues", async || {
        a.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    let second = tokio::spawn(c.lock("k").acquire());
    eventually("the second queues", async || {
        a.inspect("k").await.unwrap().waiting == 2
    })
    .await;
    first.abort();
    drop(gone);
    let started = Instant::now();
    held.release().await.unwrap();
    assert!(second.await.unwrap().unwrap().is_held());
    assert!(started.elapsed() < Duration::from_secs(1));
}

async fn time_paused_in_the_callers_runtime_changes_nothing(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let held = a.lock("k").acquire().await.unwrap();
    let outcome = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let started = Instant::now();
        let outcome = runtime.block_on(async {
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            let waiting = b.lock("k").wait(Duration::from_millis(300)).acquire();
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
    let (outcome, elapsed) = outcome.join().unwrap();
    assert!(
        matches!(outcome, Err(LockError::Busy { .. })),
        "{outcome:?}"
    );
    assert!(elapsed >= Duration::from_millis(300), "{elapsed:?}");
    assert!(held.is_held());
}

async fn the_longest_of_all_durations_is_for_ever_and_no_panic(store: Backend) {
    let a = store.client().await;
    let b = store
        .builder()
        .wait(Duration::MAX)
        .command_timeout(Duration::MAX)
        .connect_timeout(Duration::MAX)
        .connect()
        .await
        .unwrap();
    let held = a.lock("k").acquire().await.unwrap();
    let mut waiters = tokio::task::JoinSet::new();
    for request in [
        b.lock("k"),
        b.lock("k").wait(Duration::MAX),
        b.lock("k").wait_forever().fair(),
        a.lock("k").wait(Duration::MAX).max_hold(Duration::MAX),
    ] {
        waiters.spawn(request.run(async {}));
    }
    eventually("all wait", async || {
        a.health().await.unwrap().waiting == 1 && b.health().await.unwrap().waiting == 3
    })
    .await;
    assert!(b.lock("k").try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    while let Some(served) = waiters.join_next().await {
        served.unwrap().unwrap();
    }
    let endless = b.lock("k").max_hold(Duration::MAX).acquire().await.unwrap();
    endless.scope(b.lock("k").run(async {})).await.unwrap();
    endless.release().await.unwrap();
    a.shutdown(Duration::MAX).await;
    b.shutdown(Duration::MAX).await;
    store.until_empty().await;
}

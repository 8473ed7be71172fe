//! One holder at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::Backend;
use lock_runtime::LockError;
use tokio::task::JoinSet;

super::on_every_store!(
    many_tasks_of_several_clients_never_hold_at_once_and_all_get_their_turn,
    different_keys_and_namespaces_do_not_exclude_each_other,
    a_busy_lock_is_none_for_try_acquire_and_busy_for_acquire,
    a_lease_that_ends_frees_the_lock,
    a_read_think_write_under_the_lock_loses_nothing,
);

super::without_a_queue!(
    different_keys_and_namespaces_do_not_exclude_each_other,
    a_lease_that_ends_frees_the_lock,
    a_read_think_write_under_the_lock_loses_nothing,
);

async fn many_tasks_of_several_clients_never_hold_at_once_and_all_get_their_turn(store: Backend) {
    let (inside, turns) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let client = store
            .builder()
            .wait(Duration::from_secs(60))
            .connect()
            .await
            .unwrap();
        for task in 0..8 {
            let (client, inside, turns) = (client.clone(), inside.clone(), turns.clone());
            tasks.spawn(async move {
                for _ in 0..10 {
                    let request = client.lock("k");
                    let request = if (task + number) % 2 == 0 {
                        request.fair()
                    } else {
                        request
                    };
                    let guard = request.acquire().await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    turns.fetch_add(1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            });
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!(turns.load(Ordering::SeqCst), 320);
    store.until_empty().await;
}

async fn different_keys_and_namespaces_do_not_exclude_each_other(store: Backend) {
    let (a, b) = (
        store.client().await,
        store.builder().namespace("other").connect().await.unwrap(),
    );
    let _first = a.lock("k").acquire().await.unwrap();
    assert!(a.lock("l").try_acquire().await.unwrap().is_some());
    assert!(b.lock("k").try_acquire().await.unwrap().is_some());
}

async fn a_busy_lock_is_none_for_try_acquire_and_busy_for_acquire(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let held = a.lock("k").acquire().await.unwrap();
    for request in [
        b.lock("k"),
        b.lock("k").fair(),
        b.lock("k").fenced(),
        a.lock("k"),
    ] {
        assert!(request.clone().try_acquire().await.unwrap().is_none());
        match request.wait(Duration::from_millis(50)).acquire().await {
            Err(LockError::Busy { key, waited, .. }) => {
                assert_eq!(key.as_str(), "k");
                assert!(waited >= Duration::from_millis(50));
            }
            other => panic!("{other:?}"),
        }
    }
    held.release().await.unwrap();
    store.until_empty().await;
    assert!(b.lock("k").try_acquire().await.unwrap().is_some());
}

async fn a_lease_that_ends_frees_the_lock(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let forgotten = a
        .lock("k")
        .lease(Duration::from_millis(100))
        .acquire()
        .await
        .unwrap();
    let next = b.lock("k").acquire().await.unwrap();
    assert!(
        !forgotten.is_held(),
        "the old holder must know before the next one holds"
    );
    assert!(matches!(
        forgotten.release().await,
        Err(LockError::Lost { .. })
    ));
    assert!(next.is_held());
    next.release()
        .await
        .expect("the late release must not have ended the successor's hold");
}

async fn a_read_think_write_under_the_lock_loses_nothing(store: Backend) {
    let stock = Arc::new(AtomicU32::new(50));
    let mut buyers = JoinSet::new();
    for _ in 0..50 {
        let (client, stock) = (store.client().await, stock.clone());
        buyers.spawn(async move {
            let deduct = async {
                let read = stock.load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                stock.store(read - 1, Ordering::SeqCst);
            };
            client
                .lock("stock")
                .wait_forever()
                .run(deduct)
                .await
                .unwrap();
        });
    }
    while let Some(buyer) = buyers.join_next().await {
        buyer.unwrap();
    }
    assert_eq!(stock.load(Ordering::SeqCst), 0);
}

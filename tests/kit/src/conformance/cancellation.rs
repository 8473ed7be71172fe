//! Any future, dropped at any point, leaves nothing behind.

use std::future::Future;
use std::time::Duration;

use crate::{Backend, eventually, polled};
use lock_runtime::{LockClient, LockError};

super::on_every_store!(
    an_acquire_dropped_after_any_number_of_polls_leaves_nothing,
    a_fenced_acquire_dropped_after_any_number_of_polls_leaves_nothing,
    a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing,
    a_run_dropped_after_any_number_of_polls_leaves_nothing,
    a_release_dropped_after_any_number_of_polls_is_finished,
);

super::without_a_queue!(
    an_acquire_dropped_after_any_number_of_polls_leaves_nothing,
    a_fenced_acquire_dropped_after_any_number_of_polls_leaves_nothing,
    a_run_dropped_after_any_number_of_polls_leaves_nothing,
    a_release_dropped_after_any_number_of_polls_is_finished,
);

/// For 0, 1, 2, … polls until the future completes: nothing is left, and the lock is free at once.
async fn at_every_poll<F: Future>(store: &Backend, client: &LockClient, future: impl Fn() -> F) {
    for polls in 0.. {
        let output = polled(polls, future()).await;
        let complete = output.is_some();
        drop(output);
        let free = client.lock("k").try_acquire().await.unwrap();
        free.unwrap_or_else(|| panic!("the lock is taken after {polls} polls"))
            .release()
            .await
            .unwrap();
        store.until_empty().await;
        assert_eq!(client.health().await.unwrap().waiting, 0);
        if complete {
            return;
        }
    }
}

async fn an_acquire_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let client = store.client().await;
    for _ in 0..20 {
        at_every_poll(&store, &client, || client.lock("k").acquire()).await;
        at_every_poll(&store, &client, || client.lock("k").try_acquire()).await;
    }
    clean(&store, &client).await;
}

async fn a_fenced_acquire_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let client = store.client().await;
    for _ in 0..20 {
        at_every_poll(&store, &client, || client.lock("k").fenced().acquire()).await;
        at_every_poll(&store, &client, || client.lock("k").fair().acquire()).await;
    }
    clean(&store, &client).await;
}

async fn a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let (client, holder) = (store.client().await, store.client().await);
    for fair in [false, true] {
        for polls in 0.. {
            let held = holder.lock("k").acquire().await.unwrap();
            let request = client.lock("k").wait(Duration::from_millis(30));
            let request = if fair { request.fair() } else { request };
            // With more than two polls, the lock is released while the future waits, so that the
            // drop races with the grant.
            let (output, ()) = tokio::join!(polled(polls, request.acquire()), async {
                if polls > 2 {
                    held.release().await.unwrap();
                }
            });
            let complete = output.is_some();
            if let Some(Err(error)) = &output {
                assert!(matches!(error, LockError::Busy { .. }), "{error}");
            }
            drop(output);
            let _ = holder.force_release("k").await;
            store.until_empty().await;
            assert_eq!(client.health().await.unwrap().waiting, 0);
            if complete && polls > 2 {
                break;
            }
        }
    }
    clean(&store, &client).await;
}

async fn a_run_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let client = store.client().await;
    at_every_poll(&store, &client, || {
        client.lock("k").run(tokio::task::yield_now())
    })
    .await;
    clean(&store, &client).await;
}

async fn a_release_dropped_after_any_number_of_polls_is_finished(store: Backend) {
    let client = store.client().await;
    for polls in 0.. {
        let guard = client.lock("k").acquire().await.unwrap();
        let complete = polled(polls, guard.release()).await.is_some();
        store.until_empty().await;
        assert_eq!(
            client.health().await.unwrap().release_failures,
            0,
            "{polls}"
        );
        if complete {
            return;
        }
    }
}

/// Only the clients' own subscriptions are left, at most one each.
async fn clean(store: &Backend, client: &LockClient) {
    assert_eq!(client.health().await.unwrap().held, 0);
    eventually("only the clients' channels are left", async || {
        store.channels().await <= 2
    })
    .await;
}

//! Every way out of a hold releases it, and only its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::observe::{Event, Observer, What};
use lock_runtime::{Guard, HoldAfter, LockClient, LockError};

use crate::conformance::bodies::endless_body;

super::on_every_store!(
    a_dropped_guard_is_released_before_later_requests_of_its_client,
    a_panic_in_the_body_releases,
    a_cancelled_body_releases,
    a_guard_dropped_on_a_plain_thread_releases,
    a_runtime_shut_down_with_a_thousand_guards_held_releases_them_all,
    hold_at_least_keeps_the_key_after_return_failure_and_panic,
    after_a_failure_the_key_is_free_if_only_a_success_keeps_it,
    a_nested_hold_at_least_keeps_the_key_when_the_outer_hold_ends,
    a_release_hands_the_lock_to_a_waiter_and_never_ends_its_hold,
    shutdown_ends_waiting_requests_and_holds,
    observers_are_told_of_the_end_of_each_connection,
    a_body_that_awaits_closing_ends_a_shutdown_long_before_its_timeout,
    a_shutdown_in_a_body_waits_for_others_only,
    a_shutdown_in_a_scope_of_several_holds_waits_for_none_of_them,
);

super::without_a_queue!(
    a_cancelled_body_releases,
    a_dropped_guard_is_released_before_later_requests_of_its_client,
    a_guard_dropped_on_a_plain_thread_releases,
    hold_at_least_keeps_the_key_after_return_failure_and_panic,
    after_a_failure_the_key_is_free_if_only_a_success_keeps_it,
    shutdown_ends_waiting_requests_and_holds,
    observers_are_told_of_the_end_of_each_connection,
    a_shutdown_in_a_body_waits_for_others_only,
    a_shutdown_in_a_scope_of_several_holds_waits_for_none_of_them,
    a_panic_in_the_body_releases,
    a_nested_hold_at_least_keeps_the_key_when_the_outer_hold_ends,
    a_runtime_shut_down_with_a_thousand_guards_held_releases_them_all,
);

async fn a_dropped_guard_is_released_before_later_requests_of_its_client(store: Backend) {
    let client = store.client().await;
    for round in 0..200 {
        let guard = client.lock("k").try_acquire().await.unwrap();
        drop(guard.unwrap_or_else(|| panic!("busy in round {round}")));
    }
    store.until_empty().await;
}

async fn a_panic_in_the_body_releases(store: Backend) {
    let client = store.client().await;
    let body = client.lock("k").run(async { panic!("on purpose") });
    assert!(tokio::spawn(body).await.unwrap_err().is_panic());
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
}

async fn a_cancelled_body_releases(store: Backend) {
    let client = store.client().await;
    let body = tokio::spawn(client.lock("k").run(std::future::pending::<()>()));
    eventually("it is held", async || {
        client.inspect("k").await.unwrap().holder.is_some()
    })
    .await;
    body.abort();
    assert!(body.await.unwrap_err().is_cancelled());
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
}

async fn a_guard_dropped_on_a_plain_thread_releases(store: Backend) {
    let client = store.client().await;
    let guard = client.lock("k").acquire().await.unwrap();
    std::thread::spawn(move || drop(guard)).join().unwrap();
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
}

async fn a_runtime_shut_down_with_a_thousand_guards_held_releases_them_all(store: Backend) {
    let client = store.client().await;
    let (held, mut all_held) = tokio::sync::mpsc::channel(1000);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for number in 0..1000 {
        let (client, held) = (client.clone(), held.clone());
        runtime.spawn(async move {
            let _guard = client.lock(format!("k:{number}")).acquire().await.unwrap();
            held.send(()).await.unwrap();
            std::future::pending::<()>().await;
        });
        // A hundred at once: how soon a store has a thousand is not its subject.
        if number % 100 == 99 {
            for _ in 0..100 {
                all_held.recv().await.unwrap();
            }
        }
    }
    // Asks no server, which has enough to do.
    assert_eq!(client.stats().held, 1000);
    runtime.shutdown_background();
    store.until_empty().await;
    assert_eq!(client.stats().held, 0);
}

async fn hold_at_least_keeps_the_key_after_return_failure_and_panic(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let keep = Duration::from_secs(5);
    let job = |client: &LockClient, key: &str| client.lock(key).hold_at_least(keep);
    let started = Instant::now();
    job(&client, "returns").run(async {}).await.unwrap();
    job(&client, "fails")
        .run(async { Err::<(), _>("on purpose") })
        .await
        .unwrap()
        .unwrap_err();
    tokio::spawn(job(&client, "panics").run(async { panic!("on purpose") }))
        .await
        .unwrap_err();
    drop(job(&client, "dropped").acquire().await.unwrap());
    assert!(started.elapsed() < keep, "the call returns at once");
    let keys = ["returns", "fails", "panics", "dropped"];
    for key in keys {
        assert!(
            client.lock(key).try_acquire().await.unwrap().is_none(),
            "{key}"
        );
    }
    assert!(started.elapsed() < keep, "this machine is too slow to tell");
    for key in keys {
        drop(other.lock(key).acquire().await.unwrap());
        assert!(started.elapsed() >= keep, "{key}");
    }
}

async fn a_release_hands_the_lock_to_a_waiter_and_never_ends_its_hold(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let first = a.lock("k").acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("k").acquire());
    eventually("the waiter queues", async || {
        a.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    first.release().await.unwrap();
    let second = waiter.await.unwrap().unwrap();
    assert_eq!(a.inspect("k").await.unwrap().waiting, 0);
    // The first lease of a hand-over is short. The watchdog must have asked for the whole lease.
    eventually("the lease is whole", async || {
        second.remaining() > Duration::from_secs(20)
    })
    .await;
    let left = a.inspect("k").await.unwrap().remaining;
    store.check_rest(left, |left| left > Duration::from_secs(20));
    second.release().await.unwrap();
}

async fn shutdown_ends_waiting_requests_and_holds(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let held = Arc::new(client.lock("k").acquire().await.unwrap());
    let body = tokio::spawn(client.lock("body").run(std::future::pending::<()>()));
    // This client's task may learn of the hold later than the store, so the client itself is asked.
    eventually("the body runs", async || {
        client.health().await.unwrap().held == 2
    })
    .await;
    let quick = client.lock("quick").acquire().await.unwrap();
    let waiter = tokio::spawn(client.lock("k").wait_forever().acquire());
    eventually("the waiter waits", async || {
        client.health().await.unwrap().waiting == 1
    })
    .await;
    let shutdown = tokio::spawn({
        let client = client.clone();
        async move { client.shutdown(Duration::from_secs(2)).await }
    });
    assert!(matches!(waiter.await.unwrap(), Err(LockError::Shutdown)));
    assert!(matches!(
        client.lock("new").acquire().await,
        Err(LockError::Shutdown)
    ));
    assert!(held.is_held(), "bodies have until the timeout");
    quick
        .release()
        .await
        .expect("a hold can be released during the shutdown");
    shutdown.await.unwrap();
    assert!(!held.is_held());
    assert!(matches!(body.await.unwrap(), Err(LockError::Lost { .. })));
    for key in ["k", "body", "quick"] {
        assert!(
            other.lock(key).try_acquire().await.unwrap().is_some(),
            "{key}"
        );
    }
}

async fn a_body_that_awaits_closing_ends_a_shutdown_long_before_its_timeout(store: Backend) {
    let client = store.client().await;
    let (guard, view) = (
        client.lock("guard").acquire().await.unwrap(),
        client.clone(),
    );
    let body = tokio::spawn(client.lock("k").run(async move {
        tokio::join!(view.closing(), guard.closing());
        assert!(guard.is_held(), "a hold stays until the timeout");
        guard.release().await
    }));
    eventually("the body runs", async || {
        client.health().await.unwrap().held == 2
    })
    .await;
    let started = Instant::now();
    client.shutdown(Duration::from_secs(60)).await;
    assert!(started.elapsed() < Duration::from_secs(30));
    body.await.unwrap().unwrap().unwrap();
    client.closing().await;
}

async fn after_a_failure_the_key_is_free_if_only_a_success_keeps_it(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let keep = Duration::from_secs(60);
    let job = |key: &str| {
        let lock = a.lock(key).hold_at_least(keep);
        lock.hold_after(HoldAfter::Success)
    };
    let is_free = async |key: &str| {
        let tried = b.lock(key).wait(Duration::from_secs(10)).acquire().await;
        tried.map(drop).is_ok()
    };
    let is_kept = async |key: &str| b.lock(key).try_acquire().await.unwrap().is_none();

    let failed = job("k").run(async { Err::<(), _>("no paper") });
    assert_eq!(failed.await.unwrap(), Err("no paper"));
    assert!(is_free("k").await);
    let panics = tokio::spawn(job("k").run(async { panic!("on purpose") }));
    assert!(panics.await.unwrap_err().is_panic());
    assert!(is_free("k").await);
    let (runs, endless) = endless_body();
    let dropped = tokio::spawn(job("k").run(endless));
    runs.await.unwrap();
    dropped.abort();
    assert!(is_free("k").await);
    drop(job("k").acquire().await.unwrap());
    assert!(is_free("k").await);
    // A nested failure inside of a success, which keeps it, and of a hold that keeps nothing.
    let outer = a.lock("k").run(job("k").run(async { Err::<(), ()>(()) }));
    assert_eq!(outer.await.unwrap().unwrap(), Err(()));
    assert!(is_free("k").await);

    job("ok")
        .run(async { Ok::<_, &str>(()) })
        .await
        .unwrap()
        .unwrap();
    job("none").run(async { None::<u8> }).await.unwrap();
    job("guard")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let nested = a.lock("nested").run(job("nested").run(async {}));
    nested.await.unwrap().unwrap();
    for key in ["ok", "none", "guard", "nested"] {
        assert!(is_kept(key).await, "{key}");
    }
}

async fn a_nested_hold_at_least_keeps_the_key_when_the_outer_hold_ends(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let nested = client
        .lock("k")
        .hold_at_least(Duration::from_secs(60))
        .run(async {});
    client.lock("k").run(nested).await.unwrap().unwrap();
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    let left = other.inspect("k").await.unwrap().remaining;
    store.check_rest(left, |left| left > Duration::from_secs(40));
}

/// The connections that a client has, as its observer knows it.
#[derive(Clone, Debug, Default)]
struct Connections(Arc<AtomicI64>);

impl Observer for Connections {
    fn observe(&self, event: &Event<'_>) {
        let more = match event.what {
            What::Connected { .. } => 1,
            What::Disconnected { .. } => -1,
            _ => 0,
        };
        self.0.fetch_add(more, Ordering::SeqCst);
    }
}

async fn observers_are_told_of_the_end_of_each_connection(store: Backend) {
    let connections = Connections::default();
    let builder = store.builder().observer(connections.clone());
    let client = builder.connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    let view = client.clone();
    client.shutdown(Duration::from_secs(5)).await;
    assert_eq!(connections.0.load(Ordering::SeqCst), 0);
    drop((client, view));
    eventually("the observer is let go", async || {
        Arc::strong_count(&connections.0) == 1
    })
    .await;
    assert_eq!(connections.0.load(Ordering::SeqCst), 0);
}

async fn a_shutdown_in_a_body_waits_for_others_only(store: Backend) {
    for nested in [false, true] {
        let (client, other) = (store.client().await, store.client().await);
        let others = client.lock("other").acquire().await.unwrap();
        let (ends, its_end) = tokio::sync::oneshot::channel::<()>();
        let body = async |guard: &Guard| {
            let (took, ()) = tokio::join!(shut_down(&client), async {
                while !matches!(client.lock("new").acquire().await, Err(LockError::Shutdown)) {}
                others.release().await.unwrap();
            });
            assert!(took < LONG, "it waits for itself: {took:?}");
            assert!(guard.is_held());
            assert!(other.lock("k").try_acquire().await.unwrap().is_none());
            let _ = its_end.await;
            assert!(guard.is_held());
        };
        let run = async {
            match nested {
                false => client.lock("k").run_with(body).await,
                true => {
                    let nested = client.lock("k").run_with(body);
                    client.lock("k").run(nested).await.unwrap()
                }
            }
        };
        let (ended, next) = tokio::join!(run, async {
            ends.send(()).unwrap();
            let next = other.lock("k").wait(LONG).acquire().await;
            next.unwrap().release().await
        });
        ended.unwrap();
        next.unwrap();
        // From outside of its call chain, it waits until all is over.
        assert!(shut_down(&client).await < LONG);
        drop((client, other));
        store.until_empty().await;
    }
}

const LONG: Duration = Duration::from_secs(20);

async fn shut_down(client: &LockClient) -> Duration {
    let started = std::time::Instant::now();
    client.shutdown(LONG).await;
    started.elapsed()
}

async fn a_shutdown_in_a_scope_of_several_holds_waits_for_none_of_them(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let guard = client.lock("a").acquire().await.unwrap();
    let body = async {
        let nested = client.lock("a").acquire().await.unwrap();
        let several = client.multi_lock(["b", "c"]);
        let took = several.run(nested.scope(shut_down(&client))).await.unwrap();
        nested.release().await.unwrap();
        took
    };
    assert!(guard.scope(body).await < LONG);
    for key in ["b", "c"] {
        other.lock(key).wait(LONG).run(async {}).await.unwrap();
    }
    assert!(guard.is_held() && other.lock("a").try_acquire().await.unwrap().is_none());
    drop(guard);
    other.lock("a").wait(LONG).run(async {}).await.unwrap();
    drop((client, other));
    store.until_empty().await;
}

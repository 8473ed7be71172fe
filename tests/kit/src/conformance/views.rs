//! Views of one client: other namespaces, other defaults.

use std::time::{Duration, Instant};

use super::RENEWED;
use crate::{Backend, eventually};
use lock_runtime::{KeyFault, LockClient, LockError, Rate, distributed_lock};
use lock_store::Wish;

super::on_every_store!(
    a_view_has_the_locks_of_its_namespace,
    a_key_of_another_namespace_is_not_nested,
    a_view_is_handed_a_lock_by_a_client_of_its_namespace,
    holds_of_several_namespaces_end_together_and_go_to_the_waiters_there,
    every_kind_of_lock_is_apart,
    a_view_has_defaults_of_its_own,
    a_namespace_that_can_not_be_used_is_told_with_every_key,
    a_shutdown_of_a_view_ends_the_client,
);

super::without_a_queue!(
    a_view_has_the_locks_of_its_namespace,
    a_key_of_another_namespace_is_not_nested,
    a_view_is_handed_a_lock_by_a_client_of_its_namespace,
    holds_of_several_namespaces_end_together_and_go_to_the_waiters_there,
    a_view_has_defaults_of_its_own,
    a_namespace_that_can_not_be_used_is_told_with_every_key,
    a_shutdown_of_a_view_ends_the_client,
);

async fn of_other(store: &Backend) -> LockClient {
    store.builder().namespace("other").connect().await.unwrap()
}

async fn is_free(client: &LockClient, key: &str) -> bool {
    match client.lock(key).try_acquire().await.unwrap() {
        None => false,
        Some(guard) => {
            guard.release().await.unwrap();
            true
        }
    }
}

async fn a_view_has_the_locks_of_its_namespace(store: Backend) {
    let (client, there) = (store.client().await, of_other(&store).await);
    let view = client.namespaced("other");
    let guard = view.lock("k").fenced().acquire().await.unwrap();
    assert_eq!(guard.key().as_str(), "k");
    assert!(!is_free(&view, "k").await && !is_free(&there, "k").await);
    assert!(is_free(&client, "k").await);
    assert!(view.inspect("k").await.unwrap().holder.is_some());
    assert!(client.inspect("k").await.unwrap().holder.is_none());
    // A guard's key, used with a client, is a key of that client's namespace.
    assert!(is_free(&client, guard.key().as_str()).await);
    let again = client.lock(guard.key()).try_acquire().await.unwrap();
    again.unwrap().release().await.unwrap();
    // In the client's own namespace the view is the client itself. Namespaces do not nest.
    let (back, beyond) = (
        view.namespaced("lock"),
        view.namespaced("no").namespaced("other"),
    );
    assert!(is_free(&back, "k").await && !is_free(&beyond, "k").await);
    assert!(format!("{view:?}").contains("other"), "{view:?}");
    assert_eq!(
        client.health().await.unwrap().held,
        view.health().await.unwrap().held
    );
    let earlier = guard.fencing_token().unwrap();
    guard.release().await.unwrap();
    let next = there.lock("k").fenced().acquire().await.unwrap();
    assert!(next.fencing_token().unwrap() > earlier);
    next.release().await.unwrap();
    assert!(client.force_release("k").await.is_ok_and(|held| !held));
    let several = view.multi_lock(["{s}a", "{s}b"]).acquire().await.unwrap();
    assert!(is_free(&client, "{s}a").await && !is_free(&there, "{s}b").await);
    several.release().await.unwrap();
}

#[distributed_lock(key = "k", wait = "1s")]
async fn locked() -> Result<(), LockError> {
    Ok(())
}

async fn a_key_of_another_namespace_is_not_nested(store: Backend) {
    let (client, there) = (store.client().await, of_other(&store).await);
    let view = client.namespaced("other");
    let body = async {
        // Nested under the client's own hold; no nesting in the other namespace.
        client.scope(locked()).await.unwrap();
        assert!(is_free(&there, "k").await);
        let held = view.lock("k").acquire().await.unwrap();
        assert!(!is_free(&there, "k").await);
        held.scope(view.scope(locked())).await.unwrap();
        held.scope(client.scope(locked())).await.unwrap();
        held.release().await.unwrap();
        client.namespaced("lock").scope(locked()).await
    };
    client.lock("k").run(body).await.unwrap().unwrap();
}

async fn a_view_is_handed_a_lock_by_a_client_of_its_namespace(store: Backend) {
    let (client, there) = (store.client().await, of_other(&store).await);
    let view = client.namespaced("other");
    let mut soonest = Duration::MAX;
    for _ in 0..3 {
        let held = there.lock("k").acquire().await.unwrap();
        let own = client.lock("k").acquire().await.unwrap();
        let waiting = tokio::spawn(view.lock("k").acquire());
        eventually("it waits", async || {
            view.health().await.unwrap().waiting == 1
        })
        .await;
        if store.capabilities().refusal(Wish::Fair).is_none() {
            eventually("it stands in the queue there", async || {
                there.inspect("k").await.unwrap().waiting == 1
            })
            .await;
        }
        let released = Instant::now();
        held.release().await.unwrap();
        let handed = waiting.await.unwrap().unwrap();
        soonest = soonest.min(released.elapsed());
        assert!(handed.is_held() && !is_free(&there, "k").await);
        assert!(own.is_held() && !is_free(&client, "k").await);
        handed.release().await.unwrap();
        own.release().await.unwrap();
    }
    // By its message, and not only by a look after a second.
    assert!(soonest < Duration::from_millis(500), "{soonest:?}");
}

async fn holds_of_several_namespaces_end_together_and_go_to_the_waiters_there(store: Backend) {
    let (client, here) = (store.client().await, store.client().await);
    let (view, there) = (client.namespaced("other"), of_other(&store).await);
    let mut held = Vec::new();
    let mut waiting = tokio::task::JoinSet::new();
    for key in ["a", "b", "c"] {
        for (holder, waiter) in [(&client, &here), (&view, &there)] {
            held.push(holder.lock(key).acquire().await.unwrap());
            waiting.spawn(waiter.lock(key).acquire());
        }
    }
    eventually("all wait", async || {
        here.health().await.unwrap().waiting + there.health().await.unwrap().waiting == 6
    })
    .await;
    if store.capabilities().refusal(Wish::Fair).is_none() {
        for key in ["a", "b", "c"] {
            for client in [&here, &there] {
                eventually("each stands in its queue", async || {
                    client.inspect(key).await.unwrap().waiting == 1
                })
                .await;
            }
        }
    }
    // Released in the background, and so in few commands.
    drop(held);
    let mut got = Vec::new();
    while let Some(guard) = waiting.join_next().await {
        got.push(guard.unwrap().unwrap());
    }
    assert!(got.len() == 6 && got.iter().all(|guard| guard.is_held()));
}

async fn every_kind_of_lock_is_apart(store: Backend) {
    let (client, there) = (store.client().await, of_other(&store).await);
    let view = client.namespaced("other");
    let writes = view.rw_lock("rw").write().await.unwrap();
    assert!(
        there
            .rw_lock("rw")
            .read()
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        client
            .rw_lock("rw")
            .write()
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
    let reader = tokio::spawn(there.rw_lock("rw").read().acquire());
    eventually("it waits", async || {
        there.inspect("rw").await.unwrap().waiting == 1
    })
    .await;
    writes.release().await.unwrap();
    drop(reader.await.unwrap().unwrap());
    let all = view.semaphore("s", 2).permits(2).await.unwrap();
    assert!(
        there
            .semaphore("s", 2)
            .permit()
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        client
            .semaphore("s", 2)
            .permit()
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
    all.release().await.unwrap();
    view.latch("l").set(1).await.unwrap();
    assert_eq!(client.latch("l").count().await.unwrap(), None);
    let opens = tokio::spawn(async move {
        let waits = view.latch("l").wait(Duration::from_secs(20)).await;
        (waits, view)
    });
    eventually("it waits", async || {
        client.health().await.unwrap().waiting == 1
    })
    .await;
    assert_eq!(there.latch("l").count_down().await.unwrap(), 0);
    let (opened, view) = opens.await.unwrap();
    opened.unwrap();
    let once = |client: &LockClient| client.rate_limiter("r", Rate::per_hour(1));
    once(&view).acquire().await.unwrap();
    assert!(once(&there).acquire().await.is_err());
    once(&client).acquire().await.unwrap();
}

async fn a_view_has_defaults_of_its_own(store: Backend) {
    let client = store.client().await;
    let (brief, long) = (Duration::from_millis(50), Duration::from_secs(300));
    let view = client.with_wait(brief).with_lease(Duration::from_secs(60));
    let held = view.lock("k").acquire().await.unwrap();
    assert!(held.remaining() > Duration::from_secs(50), "{held:?}");
    assert!(client.lock("other").acquire().await.unwrap().remaining() <= Duration::from_secs(30));
    let asked = Instant::now();
    let busy = view.namespaced("lock").lock("k").acquire().await;
    assert!(busy.unwrap_err().is_busy() && asked.elapsed() >= brief);
    // The request's own setting takes precedence.
    let waits = tokio::spawn(view.lock("k").wait(long).acquire());
    tokio::time::sleep(2 * brief).await;
    assert!(!waits.is_finished());
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    // A view's lease is renewed, and is checked like a client's.
    let lease = store.renewable(RENEWED);
    let renewed = client.with_lease(lease).lock("k").acquire().await.unwrap();
    tokio::time::sleep(lease * 4 / 3).await;
    assert!(renewed.is_held());
    let wrong = client.with_lease(Duration::ZERO).lock("l").acquire().await;
    assert!(matches!(wrong, Err(LockError::Config { .. })), "{wrong:?}");
}

async fn a_namespace_that_can_not_be_used_is_told_with_every_key(store: Backend) {
    let client = store.client().await;
    for bad in ["a:b", "a b", "{a}", "50%", &"n".repeat(129)] {
        let view = client.namespaced(bad);
        match view.lock("k").acquire().await {
            Err(LockError::InvalidKey { key, fault, .. }) => {
                assert_eq!((key.as_str(), fault), ("k", KeyFault::Namespace));
            }
            other => panic!("{other:?}"),
        }
        assert!(view.scope(locked()).await.is_err());
        assert!(view.inspect("k").await.is_err());
    }
}

async fn a_shutdown_of_a_view_ends_the_client(store: Backend) {
    let client = store.client().await;
    let view = client.namespaced("other");
    view.shutdown(Duration::ZERO).await;
    assert!(matches!(
        client.lock("k").acquire().await,
        Err(LockError::Shutdown)
    ));
    assert!(matches!(
        view.lock("k").acquire().await,
        Err(LockError::Shutdown)
    ));
}

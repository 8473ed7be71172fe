//! The holder of a busy lock, told by its name.

use std::time::Duration;

use crate::{Backend, eventually};
use lock_runtime::observe::LockKind;
use lock_runtime::{HeldBy, LockClient, LockError, lock_key};

super::on_every_store!(
    a_request_that_has_waited_is_told_the_name_of_the_holder,
    an_inspection_tells_the_name_of_the_holder,
    a_request_is_told_that_its_own_client_has_the_lock,
    the_clients_of_a_view_know_each_other,
    a_kept_lock_has_no_owner,
    a_holder_that_is_gone_or_of_another_library_is_told_apart,
    a_request_without_a_wait_reports_what_is_known,
    a_client_is_asked_about_all_of_its_holds,
    a_client_lists_what_it_holds,
);

super::without_a_queue!(
    a_request_that_has_waited_is_told_the_name_of_the_holder,
    an_inspection_tells_the_name_of_the_holder,
    a_request_is_told_that_its_own_client_has_the_lock,
    the_clients_of_a_view_know_each_other,
    a_holder_that_is_gone_or_of_another_library_is_told_apart,
    a_kept_lock_has_no_owner,
    a_request_without_a_wait_reports_what_is_known,
    a_client_lists_what_it_holds,
);

const WAIT: Duration = Duration::from_millis(600);

async fn named(store: &Backend, name: &str) -> LockClient {
    store.builder().name(name).connect().await.unwrap()
}

fn held_by(error: &LockError) -> &HeldBy {
    match error {
        LockError::Busy { held_by, .. } => held_by,
        other => panic!("{other:?}"),
    }
}

/// The holder's client hears questions a moment after it has connected.
async fn until_named(client: &LockClient, key: &str, expected: &str) {
    eventually("the holder says its name", async || {
        let found = client.inspect(key).await.unwrap().held_by;
        matches!(found, Some(HeldBy::Client { name, held_for: Some(_), .. }) if *name == *expected)
    })
    .await;
}

async fn busy(client: &LockClient, key: &str) -> LockError {
    client.lock(key).wait(WAIT).acquire().await.unwrap_err()
}

async fn a_request_that_has_waited_is_told_the_name_of_the_holder(store: Backend) {
    let (holder, other) = (
        named(&store, "orders-7f9c").await,
        named(&store, "b:2").await,
    );
    let guard = holder.lock("k").acquire().await.unwrap();
    until_named(&other, "k", "orders-7f9c").await;
    let (first, second) = tokio::join!(busy(&other, "k"), busy(&other, "k"));
    for error in [first, second] {
        let HeldBy::Client { name, held_for, .. } = held_by(&error) else {
            panic!("{error:?}");
        };
        assert_eq!(&**name, "orders-7f9c");
        assert!(held_for.unwrap() >= WAIT / 2, "{held_for:?}");
        let text = error.to_string();
        assert!(text.contains("is held by orders-7f9c for "), "{text}");
    }
    guard.release().await.unwrap();
}

async fn an_inspection_tells_the_name_of_the_holder(store: Backend) {
    let (holder, other) = (named(&store, "a:1").await, named(&store, "b:2").await);
    let free = other.inspect("k").await.unwrap();
    assert_eq!((free.holder, free.held_by), (None, None));
    let guard = holder.lock("k").acquire().await.unwrap();
    until_named(&other, "k", "a:1").await;
    let own = holder.inspect("k").await.unwrap();
    assert_eq!(own.held_by, Some(HeldBy::ThisClient));
    guard.release().await.unwrap();
}

async fn a_request_is_told_that_its_own_client_has_the_lock(store: Backend) {
    let client = store.client().await;
    let guard = client.lock("k").acquire().await.unwrap();
    for wait in [Duration::ZERO, WAIT / 2] {
        let error = client.lock("k").wait(wait).acquire().await.unwrap_err();
        assert_eq!(*held_by(&error), HeldBy::ThisClient, "{wait:?}");
        assert!(error.to_string().contains("this very client"), "{error}");
    }
    guard.release().await.unwrap();
}

async fn the_clients_of_a_view_know_each_other(store: Backend) {
    let (holder, other) = (named(&store, "a:1").await, store.builder());
    let other = other.namespace("other").connect().await.unwrap();
    let view = holder.namespaced("other");
    let guard = view.lock("k").acquire().await.unwrap();
    until_named(&other, "k", "a:1").await;
    guard.release().await.unwrap();
}

async fn a_kept_lock_has_no_owner(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let kept = client.lock("k").hold_at_least(10 * WAIT);
    kept.acquire().await.unwrap().release().await.unwrap();
    for client in [client, other] {
        assert_eq!(*held_by(&busy(&client, "k").await), HeldBy::Kept);
    }
}

async fn a_holder_that_is_gone_or_of_another_library_is_told_apart(store: Backend) {
    let client = store.client().await;
    let Some(server) = store.server_of("lock:k").await else {
        return;
    };
    let gone = format!("{:032x}-1", 7);
    for (value, expected) in [
        (gone.as_str(), HeldBy::Disconnected),
        ("theirs", HeldBy::Foreign),
    ] {
        server.command(&["SET", "lock:k", value]).await;
        assert_eq!(*held_by(&busy(&client, "k").await), expected, "{value}");
        let found = client.inspect("k").await.unwrap().held_by;
        assert_eq!(found, Some(expected), "{value}");
    }
    server.command(&["DEL", "lock:k"]).await;
}

async fn a_request_without_a_wait_reports_what_is_known(store: Backend) {
    let (holder, other) = (store.client().await, store.client().await);
    let guard = holder.lock("k").acquire().await.unwrap();
    let request = other.lock("k").wait(Duration::ZERO);
    let error = request.acquire().await.unwrap_err();
    let by = held_by(&error);
    assert!(
        matches!(by, HeldBy::Unknown | HeldBy::AnotherClient),
        "{by:?}"
    );
    guard.release().await.unwrap();
}

async fn a_client_is_asked_about_all_of_its_holds(store: Backend) {
    let (holder, other) = (named(&store, "a:1").await, store.client().await);
    let several = holder.multi_lock(["{t}a", "{t}b"]).acquire().await.unwrap();
    let reader = holder.rw_lock("{t}c").read().acquire().await.unwrap();
    for key in ["{t}a", "{t}b", "{t}c"] {
        until_named(&other, key, "a:1").await;
    }
    several.release().await.unwrap();
    reader.release().await.unwrap();
}

async fn a_client_lists_what_it_holds(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    assert!(client.holds().is_empty());
    let lease = Duration::from_secs(20);
    let product = 42;
    let key = lock_key!("stock:<product>");
    let first = client.lock(key).lease(lease).acquire().await.unwrap();
    let _others = other.lock("another").acquire().await.unwrap();
    let view = client.namespaced("other");
    let several = view.multi_lock(["b", "a"]).acquire().await.unwrap();
    // Shares the hold.
    let _nested = first
        .scope(client.lock("stock:42").acquire())
        .await
        .unwrap();

    let holds = view.holds();
    let keys = holds.iter().map(|hold| {
        let keys = hold.keys.iter().map(|key| (key.as_str(), key.template()));
        keys.collect::<Vec<_>>()
    });
    let expected = [
        vec![("stock:42", Some("stock:<product>"))],
        vec![("a", None), ("b", None)],
    ];
    assert_eq!(keys.collect::<Vec<_>>(), expected);
    assert!(holds[0].held_for >= holds[1].held_for);
    assert!(holds[0].remaining > lease / 2 && holds[0].remaining < lease);
    assert_eq!(holds[0].kind, LockKind::Exclusive);
    drop(several);
    eventually("it is released", async || client.holds().len() == 1).await;
    // Without the store.
    client.force_release("stock:42").await.unwrap();
    assert!(first.extend(lease).await.is_err());
    assert!(client.holds().iter().all(|hold| hold.remaining.is_zero()));
}

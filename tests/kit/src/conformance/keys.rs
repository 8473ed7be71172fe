//! A key that can't be locked is refused before anything is sent.

use std::time::Duration;

use crate::Backend;
use lock_runtime::{KeyFault, LockError, LockKey, lock_key};

super::on_every_store!(
    a_key_that_cannot_be_used_is_refused_and_the_body_does_not_run,
    any_value_may_stand_first_in_a_key,
    keys_of_different_values_differ,
    options_outside_their_limits_are_config_errors,
);

super::without_a_queue!(
    a_key_that_cannot_be_used_is_refused_and_the_body_does_not_run,
    any_value_may_stand_first_in_a_key,
    keys_of_different_values_differ,
    options_outside_their_limits_are_config_errors,
);

struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Err(std::fmt::Error)
    }
}

async fn a_key_that_cannot_be_used_is_refused_and_the_body_does_not_run(store: Backend) {
    let client = store.client().await;
    let (empty, broken, percent) = ("", Broken, "50%");
    let bad: [(LockKey, KeyFault); 10] = [
        ("".into(), KeyFault::Empty),
        (
            lock_key!("stock:<empty>"),
            KeyFault::EmptyPlaceholder("empty"),
        ),
        (
            lock_key!("stock:<broken>"),
            KeyFault::DisplayFailed("broken"),
        ),
        ("x".repeat(513).into(), KeyFault::TooLong(513)),
        ("%queue".into(), KeyFault::ReservedPrefix),
        ("%3a:x".into(), KeyFault::ReservedPrefix),
        ("%".into(), KeyFault::ReservedPrefix),
        ("lock:%queue:{lock:k}".into(), KeyFault::HelperName),
        ("a{b".into(), KeyFault::Braces),
        ("{}".into(), KeyFault::Braces),
    ];
    for (key, expected) in bad {
        let mut ran = false;
        match client.lock(&key).run(async { ran = true }).await {
            Err(LockError::InvalidKey { fault, .. }) => assert_eq!(fault, expected),
            other => panic!("{key:?}: {other:?}"),
        }
        assert!(!ran);
    }
    assert_eq!(lock_key!("stock:<percent>").as_str(), "stock:50%25");
    assert_eq!(store.leftovers().await, 0);
}

async fn any_value_may_stand_first_in_a_key(store: Backend) {
    let client = store.client().await;
    let values = ["::1", " ", "%queue:{k}", "{tag}", "%3A", "\u{7f}", "Ä:"];
    let mut held = Vec::new();
    for ip in values {
        let key = lock_key!("<ip>");
        held.push(client.lock(&key).acquire().await.unwrap());
        let second = client.lock(&key).try_acquire().await.unwrap();
        assert!(second.is_none(), "{key}");
        let found = client.inspect(&key).await.unwrap();
        assert!(found.holder.is_some(), "{key}");
    }
    assert_eq!(held[0].key().as_str(), "%3A%3A1");
    for guard in held {
        guard.release().await.unwrap();
    }
    assert_eq!(store.leftovers().await, 0);
}

async fn keys_of_different_values_differ(store: Backend) {
    let client = store.client().await;
    let key = |a: &str, b: &str| lock_key!("<a>:<b>");
    let first = client.lock(key("a:b", "c")).acquire().await.unwrap();
    assert_eq!(first.key().as_str(), "a%3Ab:c");
    assert!(
        client
            .lock(key("a", "b:c"))
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        client
            .lock(key("a:b", "c"))
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
}

async fn options_outside_their_limits_are_config_errors(store: Backend) {
    let client = store.client().await;
    let (short, long) = (Duration::from_millis(9), Duration::from_secs(86_401));
    let guard = client
        .lock("held")
        .max_hold(Duration::from_secs(60))
        .acquire()
        .await
        .unwrap();
    let errors = [
        client
            .lock("k")
            .lease(Duration::ZERO)
            .acquire()
            .await
            .unwrap_err(),
        client.lock("k").lease(short).acquire().await.unwrap_err(),
        client.lock("k").lease(long).acquire().await.unwrap_err(),
        client
            .lock("k")
            .max_hold(short)
            .acquire()
            .await
            .unwrap_err(),
        client
            .lock("k")
            .lease(long / 2)
            .max_hold(long)
            .acquire()
            .await
            .unwrap_err(),
        client
            .lock("k")
            .hold_at_least(long)
            .acquire()
            .await
            .unwrap_err(),
        guard.extend(short).await.unwrap_err(),
        guard.extend(long).await.unwrap_err(),
        guard.extend(Duration::from_secs(61)).await.unwrap_err(),
        store
            .builder()
            .namespace("a:b")
            .connect()
            .await
            .unwrap_err(),
        store
            .builder()
            .namespace("n".repeat(129))
            .connect()
            .await
            .unwrap_err(),
        store.builder().lease(short).connect().await.unwrap_err(),
        store
            .builder()
            .command_timeout(Duration::ZERO)
            .connect()
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, LockError::Config { .. }), "{error}");
    }
    guard.release().await.unwrap();
    store.until_empty().await;
}

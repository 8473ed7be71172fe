//! What a client does as a whole, and what it refuses.

use lock_runtime::{KeyKind, Layout, LockError};
use lock_store::Acquired;
use lock_testkit_core::store_decorator::Reply;

use crate::recording_store::{RecordingStore, WAIT, of, simulated};

/// A key is the same in all namespaces of a store that does not tell them apart.
#[test]
fn a_store_without_namespaces_refuses_them() {
    simulated(async {
        let (store, client) = RecordingStore::open_as(|can| can.namespaces = false).await;
        let view = client.namespaced("acme");
        let error = view.lock("k").acquire().await.unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error}");
        assert_eq!(store.calls(), []);
    });
}

#[test]
fn who_makes_what_the_store_needs_has_a_minute_and_none_after_a_shutdown() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        client.migrate().await.unwrap();
        let asked = [(0, "the store is to migrate within 60000".to_owned())];
        assert_eq!(store.noted("the store is to migrate"), asked);
        client.shutdown(of(1000)).await;
        let refused = client.migrate().await.unwrap_err();
        assert!(matches!(refused, LockError::Shutdown), "{refused}");
        assert!(store.noted("the store is to migrate").is_empty());
    });
}

/// Whoever finds the mistake needs to know that the key is no lock of any kind.
#[test]
fn a_conflict_with_something_that_is_no_lock_says_so() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.answer(Reply::Acquire(Acquired::Conflict));
        store.answer(Reply::Inspect(None));
        let request = store.ask(WAIT, client.lock("k").acquire());
        let error = request.await.unwrap_err();
        let LockError::KeyConflict { found, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(found, KeyKind::NoLock);
    });
}

/// A view in another layout never takes a lock of the client's own. After a shutdown the reason is
/// the shutdown, whatever else is wrong.
#[test]
fn a_view_in_a_layout_that_can_not_be_opened_is_refused_before_and_after_a_shutdown() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let refused = async || {
            let view = client.with_layout(Layout::Redisson);
            view.lock("k").acquire().await.unwrap_err()
        };
        let error = refused().await;
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        client.shutdown(of(0)).await;
        let error = refused().await;
        assert!(matches!(error, LockError::Shutdown), "{error}");
        assert_eq!(store.calls(), []);
    });
}

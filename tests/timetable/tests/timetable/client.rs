//! What a client does as a whole, and what it refuses.

use lock_runtime::LockError;

use crate::recording_store::{RecordingStore, of, simulated};

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

//! Holds that pass from one task of a process to the next.

use std::sync::Arc;

use lock_runtime::LockClient;
use lock_testkit::store_decorator::Request;

use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};

/// A client that allows long runs of hand-offs.
async fn patient() -> (Arc<RecordingStore>, LockClient) {
    RecordingStore::open_with(|builder| builder.local_tenure(4, of(60_000))).await
}

#[test]
fn a_hold_that_is_released_or_dropped_is_passed_on_without_a_command() {
    simulated(async {
        let (store, client) = patient().await;
        let request = || store.asks(WAIT, client.lock("k").acquire());
        let guard = request().await.unwrap();
        let next = tokio::spawn(request());
        let last = tokio::spawn(request());
        ms(1).await;
        store.seen();
        guard.release().await.unwrap();
        let guard = next.await.unwrap().unwrap();
        drop(guard);
        let guard = last.await.unwrap().unwrap();
        assert_eq!(store.calls(), []);
        drop(guard);
        ms(1).await;
        assert_eq!(store.calls(), [(1, "release")]);
    });
}

#[test]
fn a_task_that_is_passed_a_hold_without_a_token_fetches_the_tokens_of_all() {
    simulated(async {
        for (behind, expected) in [(0, 1), (1, 5)] {
            let (store, client) = patient().await;
            store.title(format!("{behind} behind"));
            let first = store.asks(WAIT, client.lock("k").acquire());
            let guard = first.await.unwrap();
            let request = || store.asks(WAIT, client.lock("k").fenced().acquire());
            let next = tokio::spawn(request());
            ms(1).await;
            let others: Vec<_> = (0..behind).map(|_| tokio::spawn(request())).collect();
            ms(1).await;
            store.seen();
            guard.release().await.unwrap();
            let guard = next.await.unwrap().unwrap();
            let seen = store.seen();
            let tokens = |command: &_| match command {
                Request::Acquire(request) => request.tokens,
                other => panic!("{other:?}"),
            };
            let fetched: Vec<_> = seen
                .iter()
                .map(|one| (one.at, tokens(&one.request)))
                .collect();
            assert_eq!(fetched, [(2, expected)]);
            let first = u64::from(guard.fencing_token().unwrap());
            drop(guard);
            for other in others {
                let guard = other.await.unwrap().unwrap();
                assert_eq!(u64::from(guard.fencing_token().unwrap()), first + 1);
            }
        }
    });
}

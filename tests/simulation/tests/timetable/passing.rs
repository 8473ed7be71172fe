//! Holds that pass from one task of a process to the next.

use lock_store::memory::MemoryStore;

use crate::desk::{Desk, ms, of, simulated};

/// A client that passes holds on for long.
async fn patient() -> (std::sync::Arc<Desk>, lock_runtime::LockClient) {
    Desk::open_with(MemoryStore::new(), |builder| {
        builder.local_turn(4, of(60_000))
    })
    .await
}

#[test]
fn a_hold_that_is_released_or_dropped_is_passed_on_without_a_command() {
    simulated(async {
        let (desk, client) = patient().await;
        let guard = client.lock("k").acquire().await.unwrap();
        let next = tokio::spawn(client.lock("k").acquire());
        let last = tokio::spawn(client.lock("k").acquire());
        ms(1).await;
        desk.seen();
        guard.release().await.unwrap();
        let guard = next.await.unwrap().unwrap();
        drop(guard);
        let guard = last.await.unwrap().unwrap();
        assert_eq!(desk.story(), "");
        drop(guard);
        ms(1).await;
        assert_eq!(desk.story(), "1 release k 0 500");
    });
}

#[test]
fn whoever_is_passed_a_hold_without_a_token_fetches_those_of_the_others_as_well() {
    simulated(async {
        for (behind, tokens) in [(0, 1), (1, 5)] {
            let (desk, client) = patient().await;
            let guard = client.lock("k").acquire().await.unwrap();
            let request = || client.lock("k").fenced().acquire();
            let next = tokio::spawn(request());
            ms(1).await;
            let others: Vec<_> = (0..behind).map(|_| tokio::spawn(request())).collect();
            ms(1).await;
            desk.seen();
            guard.release().await.unwrap();
            let guard = next.await.unwrap().unwrap();
            assert_eq!(desk.story(), format!("2 acquire k Join 500 +{tokens}"));
            let first = u64::from(guard.fencing_token().unwrap());
            drop(guard);
            for other in others {
                let guard = other.await.unwrap().unwrap();
                assert_eq!(u64::from(guard.fencing_token().unwrap()), first + 1);
            }
        }
    });
}

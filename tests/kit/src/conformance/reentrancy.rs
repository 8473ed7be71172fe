//! The hold follows the call chain.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::Backend;
use lock_runtime::{Guard, LockClient, LockError, distributed_lock};

super::on_every_store!(
    nested_calls_share_the_hold,
    siblings_exclude_each_other_at_the_top_and_inside_an_outer_hold,
    scopes_of_one_guard_joined_exclude_each_other,
    a_nested_body_may_enter_an_outer_guards_scope,
    reentrant_false_would_deadlock_at_once,
    a_spawned_task_is_outside_of_the_call_chain,
    a_client_scope_keeps_the_call_chain,
    a_nested_shorter_lease_does_not_shorten_the_outer,
    a_nested_request_of_a_lost_hold_is_lost,
);

super::without_a_queue!(
    nested_calls_share_the_hold,
    siblings_exclude_each_other_at_the_top_and_inside_an_outer_hold,
    a_nested_body_may_enter_an_outer_guards_scope,
    a_nested_request_of_a_lost_hold_is_lost,
    a_nested_shorter_lease_does_not_shorten_the_outer,
    a_spawned_task_is_outside_of_the_call_chain,
    a_client_scope_keeps_the_call_chain,
    reentrant_false_would_deadlock_at_once,
    scopes_of_one_guard_joined_exclude_each_other,
);

const WAIT: Duration = Duration::from_secs(1);

#[distributed_lock(key = "chain", client = client)]
async fn descend(client: &LockClient, levels: u32) -> Result<u32, LockError> {
    if levels == 0 {
        Ok(0)
    } else {
        Ok(1 + Box::pin(descend(client, levels - 1)).await?)
    }
}

async fn nested_calls_share_the_hold(store: Backend) {
    let client = store
        .builder()
        .wait(Duration::from_secs(1))
        .connect()
        .await
        .unwrap();
    assert_eq!(descend(&client, 5).await.unwrap(), 5);
    store.until_empty().await;
}

#[distributed_lock(key = "siblings", client = client)]
async fn alone(client: &LockClient, inside: &AtomicU32) -> Result<(), LockError> {
    assert_eq!(
        inside.fetch_add(1, Ordering::SeqCst),
        0,
        "a sibling is inside"
    );
    tokio::time::sleep(Duration::from_millis(5)).await;
    inside.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

async fn siblings_exclude_each_other_at_the_top_and_inside_an_outer_hold(store: Backend) {
    let client = store.client().await;
    let inside = AtomicU32::new(0);
    let siblings = async || {
        let (a, b, c) = tokio::join!(
            alone(&client, &inside),
            alone(&client, &inside),
            alone(&client, &inside)
        );
        a.and(b).and(c).unwrap();
    };
    siblings().await;
    client.lock("siblings").run(siblings()).await.unwrap();
    // While one sibling has the hold, the other's `wait` counts.
    let outer = client.lock("siblings").acquire().await.unwrap();
    outer
        .scope(async {
            let first = client.lock("siblings").acquire().await.unwrap();
            let second = client
                .lock("siblings")
                .wait(Duration::from_millis(20))
                .acquire()
                .await;
            assert!(matches!(second, Err(LockError::Busy { .. })));
            assert!(
                client
                    .lock("siblings")
                    .try_acquire()
                    .await
                    .unwrap()
                    .is_none()
            );
            drop(first);
            assert!(
                client
                    .lock("siblings")
                    .try_acquire()
                    .await
                    .unwrap()
                    .is_some()
            );
        })
        .await;
}

async fn reentrant_false_would_deadlock_at_once(store: Backend) {
    let client = store.client().await;
    let nested = client.lock("k").reentrant(false).wait_forever().acquire();
    match client.lock("k").run(nested).await.unwrap() {
        Err(LockError::WouldDeadlock { key, .. }) => assert_eq!(key.as_str(), "k"),
        other => panic!("{other:?}"),
    }
}

async fn scoped(client: LockClient) -> Result<Option<Guard>, LockError> {
    client.scope(client.lock("k").try_acquire()).await
}

async fn a_spawned_task_is_outside_of_the_call_chain(store: Backend) {
    let client = store.client().await;
    let attempt = || client.lock("k").try_acquire();
    let spawned = client
        .lock("k")
        .run(async {
            (
                tokio::spawn(attempt()).await.unwrap(),
                // A scope sets the client. It does not bring the call chain to a new task.
                tokio::spawn(scoped(client.clone())).await.unwrap(),
            )
        })
        .await
        .unwrap();
    assert!(spawned.0.unwrap().is_none());
    assert!(spawned.1.unwrap().is_none());
}

#[distributed_lock(key = "chain", wait = "1s")]
async fn of_the_scoped_client() -> Result<(), LockError> {
    Ok(())
}

async fn a_client_scope_keeps_the_call_chain(store: Backend) {
    let (client, other) = (store.client().await, LockClient::in_memory());
    let waits = client.scope(client.lock("k").wait(WAIT).acquire());
    let nested = client.lock("k").run(waits).await.unwrap();
    assert!(nested.is_ok(), "it waits for itself: {nested:?}");
    drop(nested);
    // The body's own client, and then another client, which finds no hold of its own around it.
    let body = async {
        client.scope(of_the_scoped_client()).await?;
        other
            .scope(async {
                let _held = other.lock("chain").acquire().await?;
                assert!(client.lock("chain").wait(WAIT).acquire().await.is_ok());
                assert!(other.lock("chain").try_acquire().await?.is_none());
                Ok::<_, LockError>(())
            })
            .await
    };
    client
        .lock("chain")
        .wait(WAIT)
        .run(body)
        .await
        .unwrap()
        .unwrap();
}

async fn a_nested_shorter_lease_does_not_shorten_the_outer(store: Backend) {
    let client = store.client().await;
    let outer = client
        .lock("k")
        .lease(Duration::from_secs(20))
        .acquire()
        .await
        .unwrap();
    outer
        .scope(
            client
                .lock("k")
                .lease(Duration::from_millis(10))
                .run(async {}),
        )
        .await
        .unwrap();
    assert!(outer.remaining() > Duration::from_secs(15));
    assert!(client.inspect("k").await.unwrap().remaining.unwrap() > Duration::from_secs(15));
}

async fn a_nested_request_of_a_lost_hold_is_lost(store: Backend) {
    let client = store.client().await;
    let outer = client
        .lock("k")
        .lease(Duration::from_secs(1))
        .acquire()
        .await
        .unwrap();
    outer.lost().await;
    let nested = outer.scope(client.lock("k").acquire()).await;
    assert!(matches!(nested, Err(LockError::Lost { .. })), "{nested:?}");
}

async fn scopes_of_one_guard_joined_exclude_each_other(store: Backend) {
    let client = store.client().await;
    let guard = client.lock("siblings").acquire().await.unwrap();
    let inside = AtomicU32::new(0);
    let (a, b, c) = tokio::join!(
        guard.scope(alone(&client, &inside)),
        guard.scope(alone(&client, &inside)),
        guard.scope(alone(&client, &inside))
    );
    a.and(b).and(c).unwrap();
}

async fn a_nested_body_may_enter_an_outer_guards_scope(store: Backend) {
    let client = store
        .builder()
        .wait(Duration::from_secs(2))
        .connect()
        .await
        .unwrap();
    let outer = client.lock("siblings").acquire().await.unwrap();
    let inside = AtomicU32::new(0);
    let siblings = async || {
        let again = async || outer.scope(alone(&client, &inside)).await;
        let (a, b) = tokio::join!(again(), again());
        a.and(b)
    };
    outer
        .scope(client.lock("siblings").run(siblings()))
        .await
        .unwrap()
        .unwrap();
    // Two levels down as well.
    let two_down = client
        .lock("siblings")
        .run(client.lock("siblings").run(siblings()));
    outer.scope(two_down).await.unwrap().unwrap().unwrap();
}

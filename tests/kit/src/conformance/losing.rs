//! A hold that ends before its body does.

use std::time::Duration;

use crate::{Backend, eventually};
use lock_runtime::{LockError, LostReason, OnLost};

use crate::conformance::bodies::endless_body;

super::on_every_store!(
    a_body_that_outlives_its_lease_is_cancelled_and_the_call_returns_lost,
    on_lost_continue_lets_the_body_finish_and_returns_its_result,
    a_body_that_ended_after_its_lease_returns_lost_and_not_its_result,
    a_nested_call_is_cancelled_on_loss_although_the_outer_one_goes_on,
    a_renewed_lease_lasts_as_long_as_the_body,
    max_hold_ends_a_renewed_hold_and_frees_the_lock,
    max_hold_shortens_the_clients_lease,
    an_operator_takes_the_lock_and_the_holder_learns_of_it_at_the_next_renewal,
    extend_moves_the_deadline_and_never_shortens_it,
    a_lost_hold_stays_lost,
    a_fixed_lease_that_ended_says_what_to_write_and_guesses_nothing,
);

super::without_a_queue!(
    a_body_that_outlives_its_lease_is_cancelled_and_the_call_returns_lost,
    a_lost_hold_stays_lost,
    a_renewed_lease_lasts_as_long_as_the_body,
    extend_moves_the_deadline_and_never_shortens_it,
    max_hold_ends_a_renewed_hold_and_frees_the_lock,
    max_hold_shortens_the_clients_lease,
    a_nested_call_is_cancelled_on_loss_although_the_outer_one_goes_on,
    on_lost_continue_lets_the_body_finish_and_returns_its_result,
    a_body_that_ended_after_its_lease_returns_lost_and_not_its_result,
    a_fixed_lease_that_ended_says_what_to_write_and_guesses_nothing,
);

const SHORT: Duration = Duration::from_millis(100);

fn lost_by<T: std::fmt::Debug>(result: Result<T, LockError>) -> LostReason {
    match result {
        Err(LockError::Lost { key, reason, .. }) => {
            assert_eq!(key.as_str(), "k");
            reason
        }
        other => panic!("{other:?}"),
    }
}

async fn a_body_that_outlives_its_lease_is_cancelled_and_the_call_returns_lost(store: Backend) {
    let client = store.client().await;
    let (dropped, seen) = tokio::sync::oneshot::channel::<()>();
    let body = async {
        let _dropped = dropped;
        std::future::pending::<()>().await;
    };
    assert_eq!(
        lost_by(client.lock("k").lease(SHORT).run(body).await),
        LostReason::Expired
    );
    assert!(seen.await.is_err(), "the body was dropped");
    assert_eq!(client.health().await.unwrap().lost, 1);
    assert!(client.lock("k").acquire().await.is_ok());
}

/// A body begins within it, also on a machine that stands still for half a second.
const BEGINS: Duration = Duration::from_secs(1);

/// Blocks its thread for longer than the lease, so that its only poll returns a value.
async fn blocking_body() -> Result<u32, LockError> {
    std::thread::sleep(BEGINS + SHORT);
    Err(LockError::Shutdown)
}

async fn a_body_that_ended_after_its_lease_returns_lost_and_not_its_result(store: Backend) {
    let client = store.client().await;
    let request = || client.lock("k").lease(BEGINS);
    let lost = request().run(blocking_body()).await.unwrap_err();
    assert!(lost.is_lost() && lost.body_ended(), "{lost}");
    assert!(lost.to_string().contains("went on to its end"), "{lost}");
    assert_eq!(client.health().await.unwrap().lost, 1);
    // As a nested request, under the same hold.
    let outer = request().on_lost(OnLost::Continue);
    let nested = outer.run(client.lock("k").run(blocking_body()));
    let lost = nested.await.unwrap().unwrap_err();
    assert!(lost.is_lost() && lost.body_ended(), "{lost}");
    // A stopped body has not ended.
    let lost = request().run(std::future::pending::<()>()).await;
    assert!(!lost.unwrap_err().body_ended());
    // With `Continue`, the caller gets what the body returned.
    let on = request().on_lost(OnLost::Continue).run(blocking_body());
    assert!(matches!(on.await.unwrap(), Err(LockError::Shutdown)));
    assert!(client.lock("k").acquire().await.is_ok());
}

async fn on_lost_continue_lets_the_body_finish_and_returns_its_result(store: Backend) {
    let client = store.client().await;
    let request = client.lock("k").lease(BEGINS).on_lost(OnLost::Continue);
    let held = request
        .run_with(async |guard: &lock_runtime::Guard| {
            guard.lost().await;
            guard.is_held()
        })
        .await;
    assert!(!held.unwrap());
}

async fn a_renewed_lease_lasts_as_long_as_the_body(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let pause = store.renewable(SHORT);
    // Long enough for a machine that stands still for half a second.
    let guard = a.lock("k").lease(16 * pause).renew(true);
    let guard = guard.acquire().await.unwrap();
    for _ in 0..40 {
        tokio::time::sleep(pause).await;
        assert!(guard.is_held());
        assert!(b.lock("k").try_acquire().await.unwrap().is_none());
    }
    guard.release().await.unwrap();
}

async fn max_hold_ends_a_renewed_hold_and_frees_the_lock(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let pause = store.renewable(SHORT);
    let request = a
        .lock("k")
        .lease(20 * pause)
        .renew(true)
        .max_hold(30 * pause);
    let started = std::time::Instant::now();
    let lost = request.run(std::future::pending::<()>()).await;
    assert_eq!(lost_by(lost), LostReason::MaxHold);
    assert!(started.elapsed() > 25 * pause, "it was renewed");
    assert!(b.lock("k").acquire().await.unwrap().is_held());
}

async fn max_hold_shortens_the_clients_lease(store: Backend) {
    let cap = 20 * SHORT;
    let builder = store.builder().lease(600 * cap);
    let (a, b) = (builder.connect().await.unwrap(), store.client().await);
    let started = std::time::Instant::now();
    let body = async {
        let left = b.inspect("k").await.unwrap().remaining;
        // Some engines round up.
        store.check_rest(left, |left| left < 600 * cap / 2);
        std::future::pending::<()>().await;
    };
    let lost = a.lock("k").max_hold(cap).run(body).await;
    assert_eq!(lost_by(lost), LostReason::MaxHold);
    assert!(started.elapsed() > cap / 2);
    assert!(b.lock("k").acquire().await.unwrap().is_held());
    // A lease that is given beside it says something else.
    let longer = a.lock("k").lease(2 * cap).renew(true).max_hold(cap);
    let refused = longer.acquire().await.unwrap_err();
    assert!(matches!(refused, LockError::Config { .. }), "{refused:?}");
    assert!(refused.to_string().contains("beside it"), "{refused}");
}

async fn an_operator_takes_the_lock_and_the_holder_learns_of_it_at_the_next_renewal(
    store: Backend,
) {
    let (a, b) = (store.client().await, store.client().await);
    let (runs, endless) = endless_body();
    let lease = store.renewable(10 * SHORT);
    let request = a.lock("k").lease(lease).renew(true);
    let holder = tokio::spawn(request.run(endless));
    runs.await.unwrap();
    assert!(b.inspect("k").await.unwrap().holder.is_some());
    let next = tokio::spawn(b.lock("k").acquire());
    eventually("the next one waits", async || {
        b.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    assert!(b.force_release("k").await.unwrap());
    assert!(next.await.unwrap().unwrap().is_held());
    assert_eq!(lost_by(holder.await.unwrap()), LostReason::Gone);
    assert!(!b.force_release("nobody").await.unwrap());
}

async fn extend_moves_the_deadline_and_never_shortens_it(store: Backend) {
    let client = store.client().await;
    let guard = client
        .lock("k")
        .lease(Duration::from_secs(5))
        .acquire()
        .await
        .unwrap();
    guard.extend(Duration::from_secs(60)).await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(50));
    guard.extend(SHORT).await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(50));
    assert!(client.inspect("k").await.unwrap().remaining.unwrap() > Duration::from_secs(50));
    client.force_release("k").await.unwrap();
    assert_eq!(lost_by(guard.extend(SHORT).await), LostReason::Gone);
    assert_eq!(guard.remaining(), Duration::ZERO);
}

async fn a_lost_hold_stays_lost(store: Backend) {
    let client = store.client().await;
    let guard = client.lock("k").lease(SHORT).acquire().await.unwrap();
    guard.lost().await;
    assert!(!guard.is_held());
    assert_eq!(
        lost_by(guard.extend(Duration::from_secs(5)).await),
        LostReason::Expired
    );
    assert!(!guard.is_held());
    assert_eq!(lost_by(guard.release().await), LostReason::Expired);
}

async fn a_nested_call_is_cancelled_on_loss_although_the_outer_one_goes_on(store: Backend) {
    let client = store.client().await;
    let outer = client.lock("k").lease(BEGINS).on_lost(OnLost::Continue);
    let nested = outer.run(client.lock("k").run(std::future::pending::<()>()));
    assert_eq!(lost_by(nested.await.unwrap()), LostReason::Expired);
}

async fn a_fixed_lease_that_ended_says_what_to_write_and_guesses_nothing(store: Backend) {
    let client = store.client().await;
    let lost = client
        .lock("k")
        .lease(SHORT)
        .run(std::future::pending::<()>());
    let text = lost.await.unwrap_err().to_string();
    for says in ["its fixed lease ended", "longer `lease`", "`renew = true`"] {
        assert!(text.contains(says), "{text}");
    }
    for guess in ["renewals", "answer", "stood still"] {
        assert!(!text.contains(guess), "{text}");
    }
}

//! A store with faults.

use lock_runtime::{Faults, LockClient, LockError, LostReason, StoreErrorKind};
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{sleep, timeout};

use crate::{MINUTE, SECOND, is_busy, is_unavailable, now};

fn lost_by<T>(result: &Result<T, LockError>) -> Option<LostReason> {
    match result {
        Err(LockError::Lost { reason, .. }) => Some(*reason),
        _ => None,
    }
}

/// The reason for which the store refuses.
fn refused_as<T>(result: &Result<T, LockError>) -> Option<StoreErrorKind> {
    match result {
        Err(LockError::Unavailable { source, .. }) => Some(source.kind()),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_ends_a_request_after_two_seconds_until_it_answers() {
    let (client, faults) = LockClient::in_memory_with_faults();
    faults.fall_silent();
    let began = now();
    let request = client.lock("k").wait(MINUTE).acquire().await;
    assert!(is_unavailable(&request), "{request:?}");
    assert_eq!(began.elapsed().as_secs(), 2);
    assert!(is_unavailable(&client.health().await));
    assert!(!client.stats().connected);

    faults.answer();
    assert!(client.stats().connected);
    assert!(client.lock("k").acquire().await.unwrap().is_held());
    assert!(client.health().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_hold_outlives_a_short_silence_and_is_lost_in_a_long_one() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let guard = client.lock("k").acquire().await.unwrap();
    faults.fall_silent();
    sleep(25 * SECOND).await;
    faults.answer();
    sleep(25 * SECOND).await;
    assert!(guard.is_held());

    faults.fall_silent();
    let began = now();
    guard.lost().await;
    assert!(began.elapsed() < 31 * SECOND, "{:?}", began.elapsed());
    let released = guard.release().await;
    assert_eq!(lost_by(&released), Some(LostReason::NotRenewed));
}

#[tokio::test(start_paused = true)]
async fn a_command_under_way_is_carried_out_when_the_store_answers_again() {
    let (client, faults) = LockClient::in_memory_with_faults();
    faults.fall_silent();
    let (request, ()) = tokio::join!(client.lock("k").wait(Duration::ZERO).acquire(), async {
        sleep(SECOND / 10).await;
        faults.answer();
    });
    assert!(request.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn no_request_is_told_of_a_free_lock_by_a_silent_store() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let other = faults.held_by_another("k");
    let waiting = async {
        let guard = client.lock("k").wait(MINUTE).acquire().await.unwrap();
        (guard, now())
    };
    let ((guard, got), answered) = tokio::join!(waiting, async {
        sleep(SECOND / 2).await;
        faults.fall_silent();
        drop(other);
        sleep(SECOND).await;
        faults.answer();
        now()
    });
    assert!(guard.is_held() && got >= answered);
}

#[tokio::test(start_paused = true)]
async fn a_store_without_memory_refuses_new_locks_and_keeps_those_that_are_held() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let guard = client.lock("held").acquire().await.unwrap();
    faults.refuse(StoreErrorKind::OutOfMemory);
    let request = client.lock("k").acquire().await;
    assert_eq!(refused_as(&request), Some(StoreErrorKind::OutOfMemory));
    sleep(MINUTE).await;
    assert!(guard.is_held() && client.health().await.is_ok());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_writes_renews_nothing_and_answers_questions() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let guard = client.lock("k").acquire().await.unwrap();
    faults.refuse(StoreErrorKind::ReadOnly);
    assert!(client.inspect("k").await.unwrap().holder.is_some());
    guard.lost().await;
    // The client trusts a lease for a little less long than the store keeps it.
    sleep(SECOND).await;
    assert!(client.inspect("k").await.unwrap().holder.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_reported_at_once() {
    let (client, faults) = LockClient::in_memory_with_faults();
    faults.refuse(StoreErrorKind::Denied);
    let began = now();
    let request = client.lock("k").acquire().await;
    assert_eq!(refused_as(&request), Some(StoreErrorKind::Denied));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(
        refused_as(&client.inspect("k").await),
        Some(StoreErrorKind::Denied)
    );
}

/// A body that never ends by itself, and a rival that takes its lock away.
async fn robbed(client: &LockClient, key: &'static str, rob: impl FnOnce()) -> LostReason {
    let body = client.lock(key).lease(MINUTE).run(pending::<()>());
    let (result, ()) = tokio::join!(body, async {
        tokio::task::yield_now().await;
        rob();
    });
    lost_by(&result).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_stops_the_body_at_once() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let began = now();
    let reason = robbed(&client, "k", || assert!(faults.lose("k"))).await;
    assert_eq!(reason, LostReason::Gone);
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(client.health().await.unwrap().lost, 1);
}

#[tokio::test(start_paused = true)]
async fn another_client_can_take_a_lock_and_keep_it() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let mut other = None;
    let reason = robbed(&client, "k", || other = Some(faults.held_by_another("k"))).await;
    assert_eq!(reason, LostReason::Gone);
    let refused = client.lock("k").wait(60 * MINUTE).acquire().await;
    assert!(is_busy(&refused), "{refused:?}");
    drop(other);
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lock_on_its_way_to_the_next_task_can_be_lost() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let guard = client.lock("k").acquire().await.unwrap();
    let mut next = pin!(client.lock("k").wait(MINUTE).acquire());
    assert!(timeout(SECOND / 1000, &mut next).await.is_err());
    drop(guard);
    // Handed off inside the process, to a task that was not polled yet.
    let other = faults.held_by_another("k");
    assert!(timeout(5 * SECOND, &mut next).await.is_err());
    drop(other);
    assert!(next.await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_several_keys_is_lost_with_one_of_them() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let guard = client.multi_lock(["a", "b"]).acquire().await.unwrap();
    let unharmed = client.lock("c").acquire().await.unwrap();
    assert!(!faults.lose("misspelt") && unharmed.is_held());
    assert!(faults.lose("b"));
    assert!(!guard.is_held() && unharmed.is_held());
    assert!(!faults.lose("b"), "it met nothing");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_lock_when_the_other_holder_is_done() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let other = faults.held_by_another("k");
    assert!(client.lock("k").try_acquire().await.unwrap().is_none());
    let began = now();
    let (guard, ()) = tokio::join!(client.lock("k").acquire(), async {
        sleep(3 * SECOND + SECOND / 2).await;
        drop(other);
    });
    assert!(guard.unwrap().is_held());
    // By a message, not by the next look.
    assert_eq!(began.elapsed(), 3 * SECOND + SECOND / 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_vain_says_which_client_has_the_lock() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let _other = faults.namespaced("acme").held_by_another("k");
    sleep(5 * SECOND).await;
    let acme = client.namespaced("acme").with_wait(10 * SECOND);
    let error = acme.lock("k").acquire().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("held by somebody-else for 15"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_lost_its_lock_does_not_release_the_next_hold() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let other = faults.held_by_another("k");
    faults.lose("k");
    let guard = client.lock("k").acquire().await.unwrap();
    drop(other);
    assert!(client.lock("k").try_acquire().await.unwrap().is_none());
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn tenants_are_told_apart() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let (acme, other) = (client.namespaced("acme"), client.namespaced("other"));
    let of_acme = acme.lock("k").acquire().await.unwrap();
    let of_other = other.lock("k").acquire().await.unwrap();
    let own = client.lock("k").acquire().await.unwrap();
    faults.namespaced("acme").lose("k");
    assert!(!of_acme.is_held() && of_other.is_held() && own.is_held());

    let _another = faults.namespaced("acme").held_by_another("j");
    assert!(acme.lock("j").try_acquire().await.unwrap().is_none());
    assert!(other.lock("j").try_acquire().await.unwrap().is_some());
    faults.lose("k");
    assert!(of_other.is_held() && !own.is_held());
}

#[tokio::test]
async fn without_a_paused_clock_it_takes_real_time() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let reason = robbed(&client, "k", || assert!(faults.lose("k"))).await;
    assert_eq!(reason, LostReason::Gone);
    faults.fall_silent();
    let began = std::time::Instant::now();
    let request = client.lock("k").wait(SECOND / 5).acquire().await;
    assert!(is_unavailable(&request), "{request:?}");
    assert!(began.elapsed() >= SECOND / 5);
}

#[test]
fn it_needs_no_runtime() {
    let (client, faults): (LockClient, Faults) = LockClient::in_memory_with_faults();
    let _other = faults.held_by_another("k");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let tried = runtime.block_on(client.lock("k").try_acquire());
    assert!(tried.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_while_the_store_is_silent() {
    let (client, faults) = LockClient::in_memory_with_faults();
    let _guard = client.lock("k").acquire().await.unwrap();
    faults.fall_silent();
    let ended = timeout(MINUTE, client.shutdown(SECOND)).await;
    assert!(ended.is_ok());
}

//! A client that follows the paused clock.

use std::time::Instant;

use lock_runtime::{LockClient, LockError, LostReason, Rate, distributed_lock};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{advance, pause, sleep, timeout};

use crate::{MINUTE, SECOND, is_busy, now};

fn paused_runtime() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_a_minute_is_a_minute_of_the_paused_clock_and_no_real_time() {
    let client = LockClient::in_memory_paused();
    let _held = client.lock("k").acquire().await.unwrap();
    let (began, really) = (now(), Instant::now());
    let refused = client.lock("k").wait(MINUTE).acquire().await;
    assert!(is_busy(&refused), "{refused:?}");
    let waited = began.elapsed();
    assert!(waited >= MINUTE && waited < MINUTE + SECOND, "{waited:?}");
    assert!(really.elapsed() < MINUTE / 4, "{:?}", really.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_when_the_clock_is_advanced() {
    let client = LockClient::in_memory_paused();
    let guard = client.lock("k").lease(10 * SECOND).acquire().await.unwrap();
    advance(9 * SECOND).await;
    assert!(guard.is_held() && guard.remaining() < SECOND);
    assert!(client.lock("k").try_acquire().await.unwrap().is_none());
    advance(SECOND).await;
    assert!(!guard.is_held());
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_renewed_as_paused_time_passes_and_is_lost_over_a_jump() {
    let client = LockClient::in_memory_paused();
    let guard = client.lock("k").acquire().await.unwrap();
    sleep(60 * MINUTE).await;
    assert!(guard.is_held());
    // Longer than the lease, without a renewal.
    advance(MINUTE).await;
    assert!(!guard.is_held());
    let error = guard.release().await.unwrap_err();
    let stalled = LostReason::Stalled;
    assert!(
        matches!(&error, LockError::Lost { reason, .. } if *reason == stalled),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn max_hold_ends_a_body_after_its_time_on_the_paused_clock() {
    let client = LockClient::in_memory_paused();
    let began = now();
    let body = client
        .lock("k")
        .max_hold(5 * MINUTE)
        .run(sleep(60 * MINUTE));
    let error = body.await.unwrap_err();
    let reason = LostReason::MaxHold;
    assert!(
        matches!(&error, LockError::Lost { reason: found, .. } if *found == reason),
        "{error}"
    );
    let held = began.elapsed();
    assert!(held > 4 * MINUTE && held <= 5 * MINUTE, "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_when_the_lease_ends_on_the_paused_clock() {
    let client = LockClient::in_memory_paused();
    let guard = client.lock("k").lease(MINUTE).acquire().await.unwrap();
    let began = now();
    guard.lost().await;
    let held = began.elapsed();
    assert!(held > MINUTE - SECOND && held <= MINUTE, "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn tasks_take_turns_and_latches_and_limits_count_paused_time() {
    let client = LockClient::in_memory_paused();
    let began = now();
    let shift = || {
        let work = async { sleep(10 * SECOND).await };
        client.lock("k").wait(MINUTE).run(work)
    };
    let (one, two, three) = tokio::join!(shift(), shift(), shift());
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    assert_eq!(began.elapsed().as_secs(), 30);

    let latch = client.latch("l");
    latch.set(1).await.unwrap();
    let closed = latch.wait(MINUTE).await;
    assert!(
        matches!(closed, Err(LockError::LatchClosed { .. })),
        "{closed:?}"
    );
    assert_eq!(began.elapsed().as_secs(), 90);

    let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(MINUTE);
    for _ in 0..=30 {
        limiter.acquire().await.unwrap();
    }
    assert_eq!(began.elapsed().as_secs(), 120);
}

#[distributed_lock(key = "k", wait = "30s")]
async fn annotated() -> Result<(), LockError> {
    sleep(20 * SECOND).await;
    Ok(())
}

#[tokio::test]
async fn annotated_functions_follow_a_clock_that_is_paused_later_in_the_test() {
    pause();
    let (client, began) = (LockClient::in_memory_paused(), now());
    let both = client.scope(async { tokio::join!(annotated(), annotated()) });
    let (one, two) = timeout(MINUTE, both).await.unwrap();
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(began.elapsed().as_secs(), 40);
}

#[test]
fn without_a_paused_clock_each_call_says_what_to_write() {
    let running = Builder::new_current_thread().enable_all().build().unwrap();
    let several = Builder::new_multi_thread().enable_all().build().unwrap();
    for made_in in [None, Some(&running), Some(&several)] {
        let client = match made_in {
            Some(runtime) => runtime.block_on(async { LockClient::in_memory_paused() }),
            None => LockClient::in_memory_paused(),
        };
        running.block_on(async {
            let (latch, read) = (client.latch("l"), client.rw_lock("rw").read());
            let rate = client.rate_limiter("r", Rate::per_second(1));
            for said in [
                client.lock("k").acquire().await.map(drop),
                client.lock("k").try_acquire().await.map(drop),
                client.lock("k").run(async {}).await,
                client
                    .lock("k")
                    .lead(async |_| Ok::<_, LockError>(()))
                    .await
                    .map(drop),
                read.acquire().await.map(drop),
                rate.acquire().await,
                latch.count_down().await.map(drop),
                client.inspect("k").await.map(drop),
                client.health().await.map(drop),
            ] {
                let said = said.unwrap_err();
                assert!(matches!(said, LockError::Config { .. }), "{said:?}");
                assert!(said.to_string().contains("start_paused = true"), "{said}");
            }
            assert_eq!(client.stats().held, 0);
            client.shutdown(MINUTE).await;
            client.closing().await;
        });
    }
}

#[test]
fn a_client_and_a_guard_may_be_dropped_when_their_runtime_is_gone() {
    let runtime = paused_runtime();
    let (client, guard) = runtime.block_on(async {
        let client = LockClient::in_memory_paused();
        let guard = client.lock("k").acquire().await.unwrap();
        (client, guard)
    });
    drop(runtime);
    assert!(guard.is_held());
    drop(guard);
    drop(client);
}

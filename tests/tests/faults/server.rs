//! A server that stops, freezes, restarts, or loses its data.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, LostReason, StoreErrorKind};
use lock_testkit::{RedisServer, eventually};

use crate::{COMMAND_TIMEOUT, SLACK, client, enduring_client, timed, unavailable, until_waiting};

/// Waits while another client holds the lock, makes the server fail, and expects the error within
/// `limit`.
async fn fail_while_waiting(
    fail: impl AsyncFn(&RedisServer),
    request: impl Fn(&LockClient) -> lock_runtime::Lock,
    limit: Duration,
) -> StoreErrorKind {
    fail_while_waiting_with(COMMAND_TIMEOUT, fail, request, limit).await
}

/// The same for a client with this command timeout.
async fn fail_while_waiting_with(
    command_timeout: Duration,
    fail: impl AsyncFn(&RedisServer),
    request: impl Fn(&LockClient) -> lock_runtime::Lock,
    limit: Duration,
) -> StoreErrorKind {
    let server = RedisServer::start().await;
    let holder = client(&server.url()).await;
    let waiter = LockClient::builder()
        .url(server.url())
        .command_timeout(command_timeout)
        .wait(Duration::from_secs(2))
        .connect()
        .await
        .unwrap();
    let _held = holder.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(timed(request(&waiter).acquire()));
    // A second request of the same process, which does not talk to the store itself.
    let behind = tokio::spawn(timed(request(&waiter).acquire()));
    eventually("both wait", async || {
        waiter.health().await.unwrap().waiting == 2
            && holder.inspect("k").await.unwrap().waiting >= 1
    })
    .await;
    fail(&server).await;
    let (result, elapsed) = waiting.await.unwrap();
    assert!(elapsed <= limit + SLACK, "{elapsed:?}");
    let (behind, elapsed) = behind.await.unwrap();
    assert!(elapsed <= limit + SLACK, "{elapsed:?}");
    unavailable(behind);
    unavailable(result)
}

const WAIT: Duration = Duration::from_millis(1500);

#[tokio::test]
async fn a_server_that_stops_while_waiting_is_unavailable_within_the_wait() {
    let kind = fail_while_waiting(
        async |server| server.kill(),
        |client| client.lock("k").wait(WAIT),
        WAIT,
    )
    .await;
    assert_eq!(kind, StoreErrorKind::Disconnected);
}

#[tokio::test]
async fn a_server_that_freezes_while_waiting_is_unavailable_within_the_wait() {
    fail_while_waiting(
        async |server| server.pause(),
        |client| client.lock("k").wait(WAIT),
        WAIT,
    )
    .await;
}

#[tokio::test]
async fn a_server_that_freezes_during_a_wait_shorter_than_the_command_timeout_is_not_busy() {
    // An answer counts as recent in the second half of the wait. It freezes in the first.
    let (wait, command_timeout) = (Duration::from_secs(4), Duration::from_secs(5));
    fail_while_waiting_with(
        command_timeout,
        async |server| server.pause(),
        |client| client.lock("k").wait(wait),
        command_timeout,
    )
    .await;
}

#[tokio::test]
async fn wait_forever_does_not_wait_for_a_dead_server() {
    let forever = |client: &LockClient| client.lock("k").wait_forever();
    let limit = Duration::from_secs(3); // the client's default wait, from the last answer
    fail_while_waiting(async |server| server.kill(), forever, limit).await;
    fail_while_waiting(async |server| server.pause(), forever, limit).await;
    fail_while_waiting(
        async |server| server.pause(),
        |client| client.lock("k").fair().wait_forever(),
        limit,
    )
    .await;
}

#[tokio::test]
async fn one_try_at_a_dead_or_frozen_server_is_unavailable_within_the_command_timeout() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    server.pause();
    for _ in 0..3 {
        let (result, elapsed) = timed(client.lock("k").try_acquire()).await;
        unavailable(result);
        assert!(elapsed <= COMMAND_TIMEOUT + SLACK, "{elapsed:?}");
    }
    server.kill();
    let mut ran = false;
    let (result, elapsed) = timed(
        client
            .lock("k")
            .wait(Duration::ZERO)
            .run(async { ran = true }),
    )
    .await;
    unavailable(result);
    assert!(!ran && elapsed <= COMMAND_TIMEOUT + SLACK, "{elapsed:?}");
}

#[tokio::test]
async fn the_same_client_works_again_after_a_freeze_and_after_a_restart() {
    let server = RedisServer::start().await;
    let client = enduring_client(&server.url()).await;
    client
        .lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    server.pause();
    unavailable(client.lock("k").try_acquire().await);
    unavailable(client.lock("k").try_acquire().await);
    server.resume();
    client
        .lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    server.kill();
    unavailable(client.lock("k").try_acquire().await);
    let waiting = tokio::spawn(client.lock("k").wait(Duration::from_secs(30)).acquire());
    server.restart().await;
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn every_waiter_looks_again_after_a_restart() {
    let server = RedisServer::start().await;
    let holder = client(&server.url()).await;
    let waiter = enduring_client(&server.url()).await;
    let held = holder.lock("k").acquire().await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for fair in [true, true, false, false] {
        let request = waiter.lock("k").wait(Duration::from_secs(25));
        let request = if fair { request.fair() } else { request };
        waiting.spawn(async move { request.acquire().await.unwrap().release().await.unwrap() });
    }
    until_waiting(&holder, "k", 2).await;
    server.kill();
    server.restart().await;
    while let Some(served) = waiting.join_next().await {
        served.unwrap();
    }
    drop(held);
}

#[tokio::test]
async fn a_server_restarted_empty_loses_the_hold_at_the_next_renewal_and_tokens_still_rise() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let lease = Duration::from_secs(3);
    let guard = client
        .lock("k")
        .lease(lease)
        .renew(true)
        .fenced()
        .acquire()
        .await
        .unwrap();
    let (reason, token) = (guard.lost(), guard.fencing_token());
    server.restart_empty().await;
    let ((), elapsed) = timed(reason).await;
    assert!(
        elapsed <= lease / 3 + 2 * COMMAND_TIMEOUT + SLACK,
        "{elapsed:?}"
    );
    match guard.release().await {
        Err(LockError::Lost { reason, .. }) => assert_eq!(reason, LostReason::Gone),
        other => panic!("{other:?}"),
    }
    let next = client.lock("k").fenced().acquire().await.unwrap();
    assert!(next.fencing_token() > token);
}

#[tokio::test]
async fn a_hold_survives_a_server_that_is_away_for_less_than_its_lease() {
    let server = RedisServer::builder().appendonly(true).start().await;
    let client = crate::patient_client(&server.url()).await;
    let guard = client
        .lock("k")
        .lease(Duration::from_secs(6))
        .renew(true)
        .acquire()
        .await
        .unwrap();
    server.pause();
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.resume();
    eventually("it is renewed", async || {
        guard.remaining() > Duration::from_secs(4)
    })
    .await;
    server.kill();
    server.restart().await;
    eventually("it is renewed again", async || {
        guard.remaining() > Duration::from_secs(5)
    })
    .await;
    guard.release().await.unwrap();
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    for _ in 0..3 {
        client
            .lock("k")
            .fenced()
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        server.command(&["SCRIPT", "FLUSH"]).await;
    }
}

/// A server without memory refuses requests for a free lock. That says nothing about the requests
/// behind the first, nor about another lock.
#[tokio::test]
async fn requests_behind_a_refused_one_are_not_told_that_the_lock_is_busy() {
    const WAIT: Duration = Duration::from_secs(3);
    let server = RedisServer::start().await;
    let (client, other) = (client(&server.url()).await, client(&server.url()).await);
    let held = other.lock("busy").acquire().await.unwrap();
    let looks = tokio::spawn(client.lock("busy").wait(100 * WAIT).acquire());
    until_waiting(&other, "busy", 1).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let waits = |number: u32| {
        let wait = if number == 0 {
            4 * WAIT
        } else {
            WAIT + number * (WAIT / 20)
        };
        tokio::spawn(client.lock("free").wait(wait).acquire())
    };
    let waiting: Vec<_> = (0..6).map(waits).collect();
    for one in waiting {
        assert_eq!(unavailable(one.await.unwrap()), StoreErrorKind::OutOfMemory);
    }
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    looks.abort();
    held.release().await.unwrap();
}

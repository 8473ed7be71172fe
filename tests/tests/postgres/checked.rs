//! `lock_check` in transactions of the user's.

use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient, LockError};
use lock_testkit::{PostgresServer, eventually};

use crate::client;

const SHORT: Duration = Duration::from_secs(1);

pub(crate) fn check(guard: &Guard) -> String {
    let token = u64::from(guard.fencing_token().unwrap());
    format!("SELECT lock_store.lock_check('lock:k', {token})")
}

async fn one_and_other() -> (PostgresServer, LockClient, LockClient) {
    let server = PostgresServer::start().await;
    let (one, other) = (
        client(&server.app_url()).await,
        client(&server.app_url()).await,
    );
    (server, one, other)
}

/// What no lease can promise: the holder is slow, its lease ends, and still nobody else gets in
/// before its transaction has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_takes_over_before_a_transaction_that_has_checked_ends() {
    let (server, one, other) = one_and_other().await;
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    // Time for one command on a machine under load.
    let lock = one.lock("k").lease(3 * SHORT).renew(false).fenced();
    let guard = lock.acquire().await.unwrap();
    session.simple_query(&check(&guard)).await.unwrap();
    eventually("the lease ends", async || !guard.is_held()).await;
    let busy = other.lock("k").wait(SHORT).acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    let waits = other.lock("k").wait(Duration::from_secs(30));
    let waiter = tokio::spawn(async move { (waits.acquire().await, Instant::now()) });
    // It has asked, and been refused, while the transaction is open.
    eventually("it waits", async || {
        other.health().await.unwrap().waiting == 1
    })
    .await;
    let ended = Instant::now();
    session.batch_execute("COMMIT").await.unwrap();
    let (taken, at) = waiter.await.unwrap();
    assert!(taken.is_ok(), "{taken:?}");
    assert!(at > ended);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_pass_an_open_check() {
    let (server, one, _) = one_and_other().await;
    let lock = one.lock("k").lease(SHORT).renew(true);
    let guard = lock.fenced().acquire().await.unwrap();
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    session.simple_query(&check(&guard)).await.unwrap();
    let began = Instant::now();
    eventually("two leases pass", async || began.elapsed() > 2 * SHORT).await;
    assert!(guard.is_held());
    session.simple_query(&check(&guard)).await.unwrap();
    session.batch_execute("COMMIT").await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_over_is_refused() {
    let (server, one, other) = one_and_other().await;
    let first = one.lock("k").fenced().acquire().await.unwrap();
    let over = check(&first);
    let session = server.session().await;
    session.simple_query(&over).await.unwrap();
    first.release().await.unwrap();
    let second = other.lock("k").fenced().acquire().await.unwrap();
    let refused = session.simple_query(&over).await.unwrap_err();
    let said = refused.as_db_error().unwrap();
    assert!(
        said.message().contains("not held with this fencing token"),
        "{said}"
    );
    session.simple_query(&check(&second)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_during_an_open_check_takes_effect_when_it_ends() {
    let (server, one, other) = one_and_other().await;
    let guard = one.lock("k").fenced().acquire().await.unwrap();
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    session.simple_query(&check(&guard)).await.unwrap();
    let release = tokio::spawn(guard.release());
    let busy = other.lock("k").wait(SHORT).acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    session.batch_execute("COMMIT").await.unwrap();
    let next = other.lock("k").wait(Duration::from_secs(30));
    next.acquire().await.unwrap().release().await.unwrap();
    // It ends in any case; its own reply may have come too late to be told.
    let _ = release.await.unwrap();
}

//! `lock_check` in transactions of the user's.

use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient, LockError, lock_key};
use lock_testkit::{PostgresServer, eventually};

use crate::client;

const SHORT: Duration = Duration::from_secs(1);

pub(crate) fn check(guard: &Guard) -> String {
    let token = u64::from(guard.fencing_token().unwrap());
    let name = guard.full_name();
    format!("SELECT lock_store.lock_check('{name}', {token})")
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
    let session = server.session().await;
    let lease = 3 * SHORT;
    let lock = one.lock("k").lease(lease).renew(true);
    let guard = lock.fenced().acquire().await.unwrap();
    session.batch_execute("BEGIN").await.unwrap();
    session.simple_query(&check(&guard)).await.unwrap();
    let began = Instant::now();
    eventually("two leases pass", async || began.elapsed() > 2 * lease).await;
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

/// A release, or one by force, of which the commit takes a while.
async fn ending(server: &PostgresServer, sql: &str) -> tokio_postgres::Client {
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    session.query(sql, &[]).await.unwrap();
    session
}

/// Its check waits for the row, and must not go by what was there before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_reader_or_a_permit_whose_release_commits_just_now_is_refused() {
    let (server, one, other) = one_and_other().await;
    let release = "SELECT r.held
        FROM lock_store.share s JOIN lock_store.hold h USING (name),
            LATERAL lock_store.release(name, s.owner, s.permits, h.capacity, 0) r";
    for end in [release, "SELECT lock_store.force_release('lock:k')"] {
        for is_permit in [false, true] {
            let (held, next) = match is_permit {
                false => (one.rw_lock("k").read(), other.rw_lock("k").write()),
                true => (
                    one.semaphore("k", 1).permit(),
                    other.semaphore("k", 1).permit(),
                ),
            };
            let guard = held.fenced().acquire().await.unwrap();
            let waits = tokio::spawn(async move { next.wait(60 * SHORT).acquire().await });
            eventually("it waits", async || {
                server.number("SELECT count(*) FROM lock_store.place").await == 1
            })
            .await;
            let ending = ending(&server, end).await;
            let (session, over) = (server.session().await, check(&guard));
            let checked = tokio::spawn(async move { session.simple_query(&over).await });
            eventually("the check waits", async || {
                let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE query LIKE '%lock_check%' AND wait_event_type = 'Lock'";
                server.number(waiting).await == 1
            })
            .await;
            ending.batch_execute("COMMIT").await.unwrap();
            let refused = checked.await.unwrap();
            assert!(refused.is_err(), "permit: {is_permit}, by {end}");
            drop(guard);
            waits.await.unwrap().unwrap().release().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn above_read_committed_a_token_of_a_shared_lock_is_refused_and_others_are_checked() {
    let (server, one, _) = one_and_other().await;
    let reader = one.rw_lock("k").read().fenced().acquire().await.unwrap();
    let session = server.session().await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    session.batch_execute(begin).await.unwrap();
    let refused = session.simple_query(&check(&reader)).await.unwrap_err();
    let said = refused.as_db_error().unwrap();
    assert!(said.message().contains("READ COMMITTED"), "{said}");
    session.batch_execute("ROLLBACK").await.unwrap();
    reader.release().await.unwrap();
    // Of a lock that one holds alone, each change is noticed.
    let guard = one.lock("k").fenced().acquire().await.unwrap();
    session.batch_execute(begin).await.unwrap();
    let over = check(&guard);
    guard.release().await.unwrap();
    session.simple_query(&over).await.unwrap_err();
    session.batch_execute("ROLLBACK").await.unwrap();
    let guard = one.lock("k").fenced().acquire().await.unwrap();
    session.batch_execute(begin).await.unwrap();
    session.simple_query(&check(&guard)).await.unwrap();
    session.batch_execute("COMMIT").await.unwrap();
}

/// What is locked within a savepoint is free after a rollback to it: the page says what to write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_before_a_savepoint_outlives_a_rollback_to_it_and_one_within_does_not() {
    let (server, one, other) = one_and_other().await;
    for is_before in [true, false] {
        let session = server.session().await;
        let lock = one.lock("k").lease(4 * SHORT).renew(false).fenced();
        let guard = lock.acquire().await.unwrap();
        session.batch_execute("BEGIN").await.unwrap();
        if is_before {
            session.simple_query(&check(&guard)).await.unwrap();
        }
        session.batch_execute("SAVEPOINT a").await.unwrap();
        session.simple_query(&check(&guard)).await.unwrap();
        session.batch_execute("ROLLBACK TO a").await.unwrap();
        eventually("the lease ends", async || !guard.is_held()).await;
        let taken = other.lock("k").wait(2 * SHORT).acquire().await;
        assert_eq!(taken.is_err(), is_before, "{taken:?}");
        session.batch_execute("COMMIT").await.unwrap();
    }
}

/// A namespace that was forgotten, or a key that is not escaped, is no loss of the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_is_not_known_says_so_and_a_guard_knows_its_own() {
    let server = PostgresServer::start().await;
    let product = "a b";
    for (namespace, full_name) in [("shop", "shop:stock:a%20b"), ("", "stock:a%20b")] {
        let url = format!("{}?namespace={namespace}", server.app_url());
        let client = client(&url).await;
        let lock = client.lock(lock_key!("stock:<product>")).fenced();
        let guard = lock.acquire().await.unwrap();
        assert_eq!(guard.full_name(), full_name);
        let session = server.session().await;
        session.simple_query(&check(&guard)).await.unwrap();
        for wrong in ["lock:stock:a%20b", "shop:stock:a b"] {
            let asked = check(&guard).replace(full_name, wrong);
            let refused = session.simple_query(&asked).await.unwrap_err();
            let said = refused.as_db_error().unwrap();
            assert_eq!(said.code().code(), "LK002");
            assert!(said.message().contains(&format!("\"{wrong}\"")), "{said}");
            assert!(said.hint().unwrap().contains("full_name"), "{said:?}");
        }
        guard.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_key_of_several_is_checked_by_its_name() {
    let server = PostgresServer::start().await;
    let shop = client(&server.app_url()).await.namespaced("shop");
    let both = shop.multi_lock(["account:7", "account:3"]).fenced();
    let guard = both.acquire().await.unwrap();
    let names: Vec<String> = guard.full_names().collect();
    assert_eq!(names, ["shop:account:7", "shop:account:3"]);
    let session = server.session().await;
    for (name, token) in names.iter().zip(guard.fencing_tokens().unwrap()) {
        let check = format!("SELECT lock_store.lock_check('{name}', {token})");
        session.simple_query(&check).await.unwrap();
    }
    guard.release().await.unwrap();
}

/// A process that is stopped in its transaction, with a check, and with a row of a table `fences`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_is_frozen_in_its_transaction_keeps_the_next_one_for_the_timeouts_only() {
    const FENCE: &str = "INSERT INTO fences (resource, token) VALUES ('k', 1)
        ON CONFLICT (resource) DO UPDATE SET token = excluded.token";
    let (server, one, other) = one_and_other().await;
    let tables = "CREATE TABLE fences (resource text PRIMARY KEY, token bigint NOT NULL)";
    server.run(tables).await;
    server.run(FENCE).await;
    let guard = one.lock("k").fenced().acquire().await.unwrap();
    let frozen = server.session().await;
    let begin = "SET idle_in_transaction_session_timeout = '2s'; BEGIN";
    frozen.batch_execute(begin).await.unwrap();
    frozen.simple_query(&check(&guard)).await.unwrap();
    frozen.simple_query(FENCE).await.unwrap();
    let next = server.session().await;
    let limits = "SET lock_timeout = '100ms'";
    next.batch_execute(limits).await.unwrap();
    let refused = next.simple_query(FENCE).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "55P03");
    // The one that is frozen does nothing more, and its session ends.
    drop(guard);
    let lock = other.lock("k").wait(Duration::from_secs(30));
    lock.run(async {}).await.unwrap();
    assert!(frozen.simple_query("COMMIT").await.is_err());
    next.simple_query(FENCE).await.unwrap();
}

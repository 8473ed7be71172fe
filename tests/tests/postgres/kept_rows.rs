//! Rows of locks that another transaction keeps, as an operator's. ShedLock's table has the same
//! tests.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{PostgresServer, Proxy, eventually};
use tokio_postgres::Client;

const LEASE: Duration = Duration::from_secs(600);
const HELD: &str = "SELECT count(*) FROM lock_store.hold
    WHERE owner IS NOT NULL AND ends > clock_timestamp()";

/// Enough for several tries to get at a row.
const LONG: Duration = Duration::from_secs(2);
/// Too short to go on after a try that waited for a row.
const SHORT: Duration = Duration::from_millis(300);

async fn client(server: &PostgresServer, command_timeout: Duration) -> LockClient {
    client_at(&server.app_url(), command_timeout).await
}

async fn client_at(url: &str, command_timeout: Duration) -> LockClient {
    let builder = LockClient::builder().url(format!("{url}?connections=2"));
    let builder = builder.connect_timeout(Duration::from_secs(10));
    let builder = builder.command_timeout(command_timeout);
    builder.connect().await.unwrap()
}

/// Of the time of a request, a try at a row that is kept takes more than half over such a link, as
/// with 160 ms there and back and the default of 500 ms.
async fn far_client(server: &PostgresServer) -> (LockClient, Proxy) {
    let proxy = Proxy::start_postgres(([127, 0, 0, 1], server.port()).into()).await;
    proxy.delay(Duration::from_millis(200));
    let client = client_at(&server.app_url_at(proxy.addr()), Duration::from_secs(1)).await;
    (client, proxy)
}

/// A transaction that keeps the row of `two` until its end.
async fn keep_two(server: &PostgresServer) -> Client {
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    let row = "SELECT 1 FROM lock_store.hold WHERE name = 'lock:two' FOR UPDATE";
    session.query_one(row, &[]).await.unwrap();
    session
}

async fn held(server: &PostgresServer) -> usize {
    server.number(HELD).await
}

fn is_contended(error: &LockError) -> bool {
    match error {
        LockError::Unavailable { source, .. } => source.kind() == StoreErrorKind::Contended,
        _ => false,
    }
}

async fn the_others_are_renewed(server: &PostgresServer, client: &LockClient) {
    let acquire = async |key: &'static str| {
        let lock = client.lock(key).lease(Duration::from_secs(10)).renew(true);
        lock.acquire().await.unwrap()
    };
    // Renewed by one statement: they are due at the same time.
    let (one, two, three) = tokio::join!(acquire("one"), acquire("two"), acquire("three"));
    let keeper = keep_two(server).await;
    two.lost().await;
    for guard in [&one, &three] {
        let left = guard.remaining();
        assert!(left > Duration::from_secs(1), "{left:?}");
    }
    keeper.batch_execute("COMMIT").await.unwrap();
    one.release().await.unwrap();
    three.release().await.unwrap();
    drop(two);
    eventually("all are free", async || held(server).await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_whose_row_is_kept_leaves_the_others_their_renewals() {
    let server = PostgresServer::start().await;
    the_others_are_renewed(&server, &client(&server, LONG).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_row_leaves_the_others_their_renewals_also_over_a_slow_link() {
    let server = PostgresServer::start().await;
    let (client, _proxy) = far_client(&server).await;
    the_others_are_renewed(&server, &client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_row_leaves_the_others_their_renewals_also_in_a_short_time() {
    let server = PostgresServer::start().await;
    the_others_are_renewed(&server, &client(&server, SHORT).await).await;
}

/// What came of the release of three keys while the row of one is kept: the others are free.
async fn the_others_are_released(server: &PostgresServer, command_timeout: Duration) -> LockError {
    let client = client(server, command_timeout).await;
    let lock = client.multi_lock(["one", "two", "three"]);
    let guard = lock.lease(LEASE).renew(false).acquire().await.unwrap();
    assert_eq!(held(server).await, 3);
    let keeper = keep_two(server).await;
    let error = guard.release().await.unwrap_err();
    eventually("the others are free", async || held(server).await == 1).await;
    keeper.batch_execute("COMMIT").await.unwrap();
    eventually("all are free", async || held(server).await == 0).await;
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_keys_those_are_released_whose_rows_nobody_keeps() {
    let server = PostgresServer::start().await;
    let error = the_others_are_released(&server, LONG).await;
    assert!(is_contended(&error), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_row_keeps_no_other_from_being_released_also_in_a_short_time() {
    let server = PostgresServer::start().await;
    the_others_are_released(&server, SHORT).await;
}

/// What waited for a row leaves no time for another try, which the server would go on with.
#[tokio::test]
async fn kept_rows_cost_no_other_key_over_a_slow_link() {
    let server = PostgresServer::start().await;
    let kept = ["one", "two", "three", "four", "five"];
    let near = client(&server, LONG).await;
    let guard = near.multi_lock(kept).lease(LEASE).renew(false);
    let _guard = guard.acquire().await.unwrap();
    let keeper = server.session().await;
    server
        .run("UPDATE lock_store.hold SET ends = clock_timestamp() - interval '1 s'")
        .await;
    let keep = "BEGIN; SELECT FROM lock_store.hold FOR UPDATE";
    keeper.batch_execute(keep).await.unwrap();
    let (client, proxy) = far_client(&server).await;
    let before = proxy.requests();
    for key in kept {
        let error = client.lock(key).try_acquire().await.unwrap_err();
        assert!(is_contended(&error), "{key}: {error}");
    }
    // One try each, without an undo. The first ones are prepared, over two connections.
    let asked = proxy.requests() - before;
    assert!(asked <= 20, "{asked}");
    assert!(client.lock("other").try_acquire().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_cancelled_at_a_kept_row_costs_no_other_key() {
    let server = PostgresServer::start().await;
    let before_the_row = "ALTER ROLE app SET statement_timeout = '100ms'";
    server.run(before_the_row).await;
    let error = the_others_are_released(&server, LONG).await;
    assert!(error.to_string().contains("57014"), "{error}");
}

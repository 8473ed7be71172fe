//! Rows of locks that another transaction keeps, as an operator's. ShedLock's table has the same
//! tests.

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{PostgresServer, eventually};
use tokio_postgres::Client;

const LEASE: Duration = Duration::from_secs(600);
const HELD: &str = "SELECT count(*) FROM lock_store.hold
    WHERE owner IS NOT NULL AND ends > clock_timestamp()";

/// With the time limits that clients have if nobody says otherwise.
async fn client(server: &PostgresServer) -> LockClient {
    let url = format!("{}?connections=2", server.app_url());
    let builder = LockClient::builder().url(url);
    let connect = Duration::from_secs(10);
    builder.connect_timeout(connect).connect().await.unwrap()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_whose_row_is_kept_leaves_the_others_their_renewals() {
    let server = PostgresServer::start().await;
    let client = client(&server).await;
    let acquire = async |key: &'static str| {
        let lock = client.lock(key).lease(Duration::from_secs(3)).renew(true);
        lock.acquire().await.unwrap()
    };
    // Renewed by one statement: they are due at the same time.
    let (one, two, three) = tokio::join!(acquire("one"), acquire("two"), acquire("three"));
    let keeper = keep_two(&server).await;
    two.lost().await;
    for guard in [&one, &three] {
        let left = guard.remaining();
        assert!(left > Duration::from_millis(300), "{left:?}");
    }
    keeper.batch_execute("COMMIT").await.unwrap();
    one.release().await.unwrap();
    three.release().await.unwrap();
    drop(two);
    eventually("all are free", async || held(&server).await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_keys_those_are_released_whose_rows_nobody_keeps() {
    let server = PostgresServer::start().await;
    let client = client(&server).await;
    let lock = client.multi_lock(["one", "two", "three"]);
    let guard = lock.lease(LEASE).renew(false).acquire().await.unwrap();
    assert_eq!(held(&server).await, 3);
    let keeper = keep_two(&server).await;
    let _ = guard.release().await;
    eventually("the others are free", async || held(&server).await == 1).await;
    keeper.batch_execute("COMMIT").await.unwrap();
    eventually("all are free", async || held(&server).await == 0).await;
}

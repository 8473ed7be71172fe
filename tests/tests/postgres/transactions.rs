//! What outlives the lock: a transaction of the caller's, a stream that is returned, a request that
//! nobody waits for any more. The wrong form, and the right one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use lock_runtime::{LockClient, LockError, distributed_lock};
use lock_testkit::{PostgresServer, eventually};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_postgres::{Client, RowStream, Transaction};

use crate::client;

const ITEMS: i64 = 10;
const SOLD: &str = "SELECT count(*) FROM sale";

type Failed = Box<dyn std::error::Error + Send + Sync>;

async fn shop() -> (PostgresServer, LockClient) {
    let server = PostgresServer::start().await;
    server.run("CREATE TABLE sale (buyer bigint)").await;
    let locks = client(&server.app_url()).await;
    (server, locks)
}

/// Reads, decides, writes.
async fn sell(tx: &Transaction<'_>, buyer: i64) -> Result<bool, tokio_postgres::Error> {
    let sold: i64 = tx.query_one(SOLD, &[]).await?.get(0);
    if sold < ITEMS {
        tx.execute("INSERT INTO sale VALUES ($1)", &[&buyer])
            .await?;
    }
    Ok(sold < ITEMS)
}

/// Wrong: whoever calls it commits after the release.
#[distributed_lock(key = "item", client = locks, outlives = true)]
async fn sell_in(tx: &mut Transaction<'_>, locks: &LockClient, buyer: i64) -> Result<bool, Failed> {
    Ok(sell(tx, buyer).await?)
}

/// Right: it begins and commits inside.
#[distributed_lock(key = "item", client = locks, wait = "60s")]
async fn sell_one(session: &mut Client, locks: &LockClient, buyer: i64) -> Result<bool, Failed> {
    let tx = session.transaction().await?;
    let sold = sell(&tx, buyer).await?;
    tx.commit().await?;
    Ok(sold)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_the_caller_commits_sells_more_than_there_is() {
    let (server, locks) = shop().await;
    let fill = format!("INSERT INTO sale SELECT 0 FROM generate_series(2, {ITEMS})");
    server.run(&fill).await;
    let (mut one, mut other) = (server.session().await, server.session().await);
    let mut first = one.transaction().await.unwrap();
    let mut second = other.transaction().await.unwrap();
    // Never at once.
    assert!(sell_in(&mut first, &locks, 1).await.unwrap());
    assert!(sell_in(&mut second, &locks, 2).await.unwrap());
    first.commit().await.unwrap();
    second.commit().await.unwrap();
    assert_eq!(server.number(SOLD).await as i64, ITEMS + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_begun_and_committed_inside_sells_what_there_is() {
    let (server, locks) = shop().await;
    let mut buyers = JoinSet::new();
    for buyer in 0..4 * ITEMS {
        let (mut session, locks) = (server.session().await, locks.clone());
        buyers.spawn(async move { sell_one(&mut session, &locks, buyer).await.unwrap() });
    }
    let sold = buyers.join_all().await.into_iter().filter(|sold| *sold);
    assert_eq!(sold.count() as i64, ITEMS);
    assert_eq!(server.number(SOLD).await as i64, ITEMS);
}

/// Wrong: its rows are read when the lock is released.
#[distributed_lock(key = "item", client = locks)]
async fn stream_sales(session: &Client, locks: &LockClient) -> Result<RowStream, Failed> {
    let none: [&str; 0] = [];
    Ok(session.query_raw("SELECT buyer FROM sale", none).await?)
}

/// Right: they are read inside.
#[distributed_lock(key = "item", client = locks)]
async fn list_sales(session: &Client, locks: &LockClient) -> Result<Vec<i64>, Failed> {
    let rows = session.query("SELECT buyer FROM sale", &[]).await?;
    assert!(
        locks
            .lock("item")
            .reentrant(false)
            .try_acquire()
            .await
            .is_err()
    );
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_returned_is_read_after_the_release() {
    let (server, locks) = shop().await;
    server.run("INSERT INTO sale VALUES (7)").await;
    let session = server.session().await;
    let rows = stream_sales(&session, &locks).await.unwrap();
    let other = locks.lock("item").try_acquire().await.unwrap();
    assert!(other.is_some(), "nobody keeps others out");
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    assert_eq!(rows.len(), 1);
    drop(other);
    assert_eq!(list_sales(&session, &locks).await.unwrap(), [7]);
}

/// Two steps. `asked` wakes when the first is done, and the second waits for `may`.
#[distributed_lock(key = "order")]
async fn ship(server: &PostgresServer, asked: &Notify, may: &Notify) -> Result<(), LockError> {
    server.run("INSERT INTO sale VALUES (1)").await;
    asked.notify_one();
    may.notified().await;
    server.run("INSERT INTO sale VALUES (2)").await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_caller_hangs_up_stops_half_way_unless_it_is_a_task_of_its_own() {
    let (server, locks) = shop().await;
    let server = Arc::new(server);
    let (asked, may) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    // As a server drops the future of a handler.
    let handler = locks.scope(ship(&server, &asked, &may));
    tokio::select! {
        done = handler => panic!("{done:?}"),
        () = asked.notified() => {}
    }
    assert_eq!(server.number(SOLD).await, 1);
    server.run("TRUNCATE sale").await;
    // With the client handed over: a spawned task has no scope.
    let (of_task, began, goes_on) = (locks.clone(), Arc::clone(&asked), Arc::clone(&may));
    let shop = Arc::clone(&server);
    let handler = async move {
        let work = async move { of_task.scope(ship(&shop, &began, &goes_on)).await };
        tokio::spawn(work).await.unwrap()
    };
    tokio::select! {
        done = handler => panic!("{done:?}"),
        () = asked.notified() => {}
    }
    assert!(locks.lock("order").try_acquire().await.unwrap().is_none());
    may.notify_one();
    eventually("the second step is done", async || {
        server.number(SOLD).await == 2
    })
    .await;
    locks
        .lock("order")
        .wait(Duration::from_secs(30))
        .run(async {})
        .await
        .unwrap();
}

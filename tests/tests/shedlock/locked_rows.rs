//! Rows of the table that another transaction keeps, as an operator's, or one of a job's own.

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{PostgresServer, eventually};
use tokio_postgres::Client;

use crate::on_postgres::{postgres, url};

const LEASE: Duration = Duration::from_secs(600);

/// With the time limits that clients have if nobody says otherwise.
async fn client(server: &PostgresServer) -> LockClient {
    let builder = LockClient::builder().url(url(server, "&connections=2"));
    let connect = Duration::from_secs(10);
    builder.connect_timeout(connect).connect().await.unwrap()
}

/// The rows of these jobs, which nobody holds.
async fn rows(server: &PostgresServer, jobs: &[&str]) {
    for job in jobs {
        let row = format!(
            "INSERT INTO shedlock SELECT '{job}', now - interval '1 second', now, 'host'
             FROM (SELECT timezone('utc', clock_timestamp()) AS now) AS t"
        );
        server.run(&row).await;
    }
}

/// A transaction that keeps them until its end.
async fn keep(server: &PostgresServer, jobs: &[&str]) -> Client {
    let session = server.session().await;
    let names = jobs.iter().map(|job| format!("'{job}'"));
    let names = names.collect::<Vec<_>>().join(", ");
    let keep = format!("BEGIN; SELECT FROM shedlock WHERE name IN ({names}) FOR UPDATE");
    session.batch_execute(&keep).await.unwrap();
    session
}

async fn held(server: &PostgresServer) -> usize {
    let held =
        "SELECT count(*) FROM shedlock WHERE lock_until > timezone('utc', clock_timestamp())";
    server.number(held).await
}

/// Nothing of the clients is under way.
async fn until_all_is_done(server: &PostgresServer) {
    let under_way = "SELECT count(*) FROM pg_stat_activity
        WHERE usename = 'jobs' AND state <> 'idle'";
    eventually("all is done", async || server.number(under_way).await == 0).await;
}

#[tokio::test]
async fn an_acquire_that_waited_for_the_row_past_its_deadline_takes_nothing() {
    let (server, _) = postgres().await;
    rows(&server, &["report"]).await;
    let client = client(&server).await;
    let keeper = keep(&server, &["report"]).await;
    let lock = client.lock("report").lease(LEASE).renew(false);
    lock.try_acquire().await.unwrap_err();
    // By the server's clock. Its deadline comes 1.5 s after it was sent, and the undo ends later.
    keeper.batch_execute("SELECT pg_sleep(4)").await.unwrap();
    keeper.batch_execute("COMMIT").await.unwrap();
    until_all_is_done(&server).await;
    assert_eq!(held(&server).await, 0);
    assert!(client.lock("report").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn an_extension_that_waited_for_the_row_past_the_end_of_its_hold_takes_nothing() {
    let (server, _) = postgres().await;
    let client = client(&server).await;
    let lock = client.lock("report").lease(Duration::from_secs(2));
    let guard = lock.renew(false).acquire().await.unwrap();
    let keeper = keep(&server, &["report"]).await;
    guard.extend(LEASE).await.unwrap_err();
    // By the server's clock, longer than the hold lasts.
    keeper.batch_execute("SELECT pg_sleep(4)").await.unwrap();
    guard.lost().await;
    keeper.batch_execute("COMMIT").await.unwrap();
    until_all_is_done(&server).await;
    assert_eq!(held(&server).await, 0);
}

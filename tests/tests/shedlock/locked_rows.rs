//! Rows of the table that another transaction keeps, as an operator's, or one of a job's own.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{PostgresServer, Proxy, eventually};
use tokio_postgres::Client;

use crate::on_postgres::{postgres, url, url_at};

const LEASE: Duration = Duration::from_secs(600);

/// With the time limits that clients have if nobody says otherwise.
async fn client(server: &PostgresServer) -> LockClient {
    let builder = LockClient::builder().url(url(server, "&connections=2"));
    let connect = Duration::from_secs(10);
    builder.connect_timeout(connect).connect().await.unwrap()
}

/// Of the time of a request, a try at a row that is kept takes more than half over such a link, as
/// with 160 ms there and back and the default of 500 ms.
async fn far_client(server: &PostgresServer) -> (LockClient, Proxy) {
    let proxy = Proxy::start_postgres(([127, 0, 0, 1], server.port()).into()).await;
    proxy.delay(Duration::from_millis(200));
    let url = url_at(proxy.addr().port(), "&connections=2");
    let builder = LockClient::builder().url(url);
    let builder = builder.connect_timeout(Duration::from_secs(10));
    let builder = builder.command_timeout(Duration::from_secs(1));
    (builder.connect().await.unwrap(), proxy)
}

/// The rows of these jobs, which nobody holds, or `host` does for a minute.
async fn rows(server: &PostgresServer, jobs: &[&str], are_held: bool) {
    let until = if are_held { "60 seconds" } else { "-1 second" };
    for job in jobs {
        let row = format!(
            "INSERT INTO shedlock SELECT '{job}', now + interval '{until}', now, 'host'
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

/// Lets commits wait for a standby that is not there, or go on.
async fn commits(server: &PostgresServer, setting: &str) {
    let session = server.session().await;
    let set = format!("ALTER SYSTEM {setting}");
    session.batch_execute(&set).await.unwrap();
    server.run("SELECT pg_reload_conf()").await;
    let waits = setting.contains('*');
    let write = "SELECT pg_logical_emit_message(true, 'commits', 'one')";
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    eventually("the server goes by it", async || {
        let other = server.session().await;
        let written = tokio::spawn(async move { other.batch_execute(write).await });
        eventually("it is written, or waits", async || {
            written.is_finished() || server.number(waiting).await > 0
        })
        .await;
        written.is_finished() != waits
    })
    .await;
}

/// Nothing of the clients is under way.
async fn until_all_is_done(server: &PostgresServer) {
    let under_way = "SELECT count(*) FROM pg_stat_activity
        WHERE usename = 'jobs' AND state <> 'idle'";
    eventually("all is done", async || server.number(under_way).await == 0).await;
}

fn is_contended(error: &LockError) -> bool {
    match error {
        LockError::Unavailable { source, .. } => source.kind() == StoreErrorKind::Contended,
        _ => false,
    }
}

#[tokio::test]
async fn an_acquire_that_waited_for_the_row_past_its_deadline_takes_nothing() {
    let (server, _) = postgres().await;
    rows(&server, &["report"], false).await;
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

#[tokio::test]
async fn rows_that_others_keep_cost_no_other_job_and_are_told() {
    let (server, _) = postgres().await;
    let kept = ["one", "two", "three", "four", "five"];
    rows(&server, &kept, false).await;
    let client = client(&server).await;
    let keeper = keep(&server, &kept).await;
    for job in kept {
        let error = client.lock(job).try_acquire().await.unwrap_err();
        assert!(is_contended(&error), "{job}: {error}");
    }
    let other = client.lock("other").try_acquire().await.unwrap().unwrap();
    other.release().await.unwrap();
    let waits = client.lock("one").wait(Duration::from_secs(30));
    let waits = tokio::spawn(waits.acquire());
    keeper.batch_execute("COMMIT").await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}

/// What waited for a row leaves no time for another try, which the server would go on with.
#[tokio::test]
async fn rows_that_others_keep_cost_no_other_job_over_a_slow_link() {
    let (server, _) = postgres().await;
    let kept = ["one", "two", "three", "four", "five"];
    rows(&server, &kept, false).await;
    let (client, proxy) = far_client(&server).await;
    let _keeper = keep(&server, &kept).await;
    let before = proxy.requests();
    for job in kept {
        let error = client.lock(job).try_acquire().await.unwrap_err();
        assert!(is_contended(&error), "{job}: {error}");
    }
    // One try each, without an undo. The first ones are prepared, over two connections.
    let asked = proxy.requests() - before;
    assert!(asked <= 20, "{asked}");
    assert!(client.lock("other").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_held_lock_is_busy_although_its_row_is_kept() {
    let (server, _) = postgres().await;
    rows(&server, &["report"], true).await;
    let client = client(&server).await;
    let _keeper = keep(&server, &["report"]).await;
    assert!(client.lock("report").try_acquire().await.unwrap().is_none());
    let waits = client.lock("report").wait(Duration::from_millis(300));
    let error = waits.acquire().await.unwrap_err();
    assert!(error.is_busy(), "{error}");
    assert!(error.to_string().contains("ShedLock on host"), "{error}");
}

#[tokio::test]
async fn a_hold_whose_row_is_kept_leaves_the_others_their_renewals() {
    let (server, _) = postgres().await;
    let lease = Duration::from_secs(3);
    the_others_are_renewed(&server, &client(&server).await, lease).await;
}

#[tokio::test]
async fn a_kept_row_leaves_the_others_their_renewals_also_over_a_slow_link() {
    let (server, _) = postgres().await;
    let (client, _proxy) = far_client(&server).await;
    the_others_are_renewed(&server, &client, Duration::from_secs(6)).await;
}

async fn the_others_are_renewed(server: &PostgresServer, client: &LockClient, lease: Duration) {
    let acquire = async |job: &'static str| {
        let lock = client.lock(job).lease(lease).renew(true);
        lock.acquire().await.unwrap()
    };
    // Renewed by one statement: they are due at the same time.
    let (one, two, three) = tokio::join!(acquire("one"), acquire("two"), acquire("three"));
    let keeper = keep(server, &["two"]).await;
    two.lost().await;
    for guard in [&one, &three] {
        let left = guard.remaining();
        assert!(left > Duration::from_millis(300), "{left:?}");
    }
    keeper.batch_execute("COMMIT").await.unwrap();
    one.release().await.unwrap();
    three.release().await.unwrap();
    drop(two);
    eventually("all are free", async || held(server).await == 0).await;
}

/// As on a disk, or at a standby, that does not answer: what was written, nobody sees yet.
#[tokio::test]
async fn an_acquire_whose_commit_stands_still_is_undone() {
    let (server, _) = postgres().await;
    let client = client(&server).await;
    rows(&server, &["old"], false).await;
    for job in ["old", "new"] {
        commits(&server, "SET synchronous_standby_names = '*'").await;
        let request = client.lock(job).lease(LEASE).try_acquire();
        assert!(request.await.unwrap_err().is_unavailable());
        // By default, an undo that is acknowledged after 2.5 s is the last.
        tokio::time::sleep(Duration::from_secs(4)).await;
        commits(&server, "RESET synchronous_standby_names").await;
        eventually("it is undone", async || client.stats().undoing == 0).await;
        until_all_is_done(&server).await;
        assert_eq!(held(&server).await, 0, "{job}");
    }
}

/// Their renewal is being committed while their holds end.
#[tokio::test]
async fn a_release_waits_for_a_renewal_whose_commit_stands_still() {
    let (server, _) = postgres().await;
    let client = client(&server).await;
    let lease = Duration::from_secs(5);
    let one = client.lock("report").lease(lease).renew(true);
    let several = client.multi_lock(["one", "two"]).lease(lease).renew(true);
    let one = one.acquire().await.unwrap();
    let several = several.acquire().await.unwrap();
    let renewing = server.session().await;
    let renew = "BEGIN; UPDATE shedlock SET lock_until = lock_until + interval '10 minutes'";
    renewing.batch_execute(renew).await.unwrap();
    one.lost().await;
    several.lost().await;
    eventually("their time has passed", async || held(&server).await == 0).await;
    drop((one, several));
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE usename = 'jobs' AND wait_event_type = 'Lock'";
    eventually("it waits", async || server.number(waiting).await > 0).await;
    // Each has met the rows at least once.
    tokio::time::sleep(Duration::from_secs(1)).await;
    renewing.batch_execute("COMMIT").await.unwrap();
    eventually("they are released", async || held(&server).await == 0).await;
}

#[tokio::test]
async fn a_row_that_is_kept_for_a_moment_costs_no_hold() {
    let (server, _) = postgres().await;
    let client = client(&server).await;
    let lock = client.lock("report").lease(Duration::from_secs(3));
    let guard = lock.renew(true).acquire().await.unwrap();
    for _ in 0..3 {
        let keeper = keep(&server, &["report"]).await;
        // Longer than a statement waits, and shorter than the lease.
        keeper.batch_execute("SELECT pg_sleep(1)").await.unwrap();
        keeper.batch_execute("COMMIT").await.unwrap();
        let before = guard.remaining();
        eventually("it is renewed", async || guard.remaining() > before).await;
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert_eq!(held(&server).await, 0);
}

#[tokio::test]
async fn of_several_keys_those_are_released_whose_rows_nobody_keeps() {
    let (server, _) = postgres().await;
    let client = client(&server).await;
    let lock = client.multi_lock(["one", "two", "three"]);
    let guard = lock.lease(LEASE).renew(false).acquire().await.unwrap();
    assert_eq!(held(&server).await, 3);
    let keeper = keep(&server, &["two"]).await;
    let _ = guard.release().await;
    eventually("the others are free", async || held(&server).await == 1).await;
    keeper.batch_execute("COMMIT").await.unwrap();
    eventually("all are free", async || held(&server).await == 0).await;
}

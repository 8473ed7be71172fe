//! Many who want one key: its row, and who waits for it.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{PostgresServer, eventually};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::checked::check;
use crate::{builder, client};

const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(60);
/// The sessions of clients that wait for a row.
pub(crate) const AT_THE_ROW: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE usename = 'app' AND wait_event_type = 'Lock'";

/// A session that has the row of the key `k`, as a request of a crowd.
pub(crate) async fn row_of_k(server: &PostgresServer) -> Client {
    let session = row_of_k_if_any(server).await;
    session.unwrap()
}

pub(crate) async fn row_of_k_if_any(server: &PostgresServer) -> Option<Client> {
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    let row = "SELECT 1 FROM lock_store.hold WHERE name = 'lock:k' FOR NO KEY UPDATE";
    let row = session.query_opt(row, &[]).await.unwrap();
    row.map(|_| session)
}

pub(crate) async fn await_row_lock(server: &PostgresServer) {
    eventually("a session waits for a row", async || {
        server.number(AT_THE_ROW).await > 0
    })
    .await;
}

fn contended(error: &LockError) -> String {
    let said = error.to_string();
    let LockError::Unavailable { source, .. } = error else {
        panic!("{said}");
    };
    assert_eq!(source.kind(), StoreErrorKind::Contended, "{said}");
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_readers_gets_in_when_the_writer_leaves_and_nothing_fails() {
    const MANY: usize = 300;
    let server = PostgresServer::start().await;
    // Much more than by default: on a busy machine a statement for many waits for several others.
    let timed = LockClient::builder().url(server.app_url());
    let timed = timed.command_timeout(Duration::from_secs(10));
    let timed = timed.unavailable_after(Duration::from_secs(30));
    let (writer, readers) = (
        client(&server.app_url()).await,
        timed.connect().await.unwrap(),
    );
    let guard = writer.rw_lock("k").write().await.unwrap();
    let mut crowd = JoinSet::new();
    for _ in 0..MANY {
        let read = readers.rw_lock("k").read().wait(LONG);
        crowd.spawn(async move { read.acquire().await });
    }
    eventually("all of them wait", async || {
        if let Some(ended) = crowd.try_join_next() {
            panic!("it waits no more: {:?}", ended.unwrap());
        }
        server.number("SELECT count(*) FROM lock_store.place").await == MANY
    })
    .await;
    guard.release().await.unwrap();
    let guards: Vec<_> = crowd
        .join_all()
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let all = server.number("SELECT count(*) FROM lock_store.share").await;
    assert_eq!(all, MANY);
    let mut releases: JoinSet<_> = guards.into_iter().map(|guard| guard.release()).collect();
    while let Some(released) = releases.join_next().await {
        released.unwrap().unwrap();
    }
    assert_eq!(
        server.number("SELECT count(*) FROM lock_store.share").await,
        0
    );
}

/// A commit with hundreds of grants takes too long: who is in lets the next ones in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_over_grants_to_64_at_most_and_all_get_in() {
    const MANY: usize = 150;
    let server = PostgresServer::start().await;
    let (writer, readers) = (
        client(&server.app_url()).await,
        client(&server.app_url()).await,
    );
    let guard = writer.rw_lock("k").write().await.unwrap();
    let mut crowd = JoinSet::new();
    for _ in 0..MANY {
        let read = readers.rw_lock("k").read().wait(LONG);
        crowd.spawn(async move { read.acquire().await });
    }
    eventually("all of them wait", async || {
        server.number("SELECT count(*) FROM lock_store.place").await == MANY
    })
    .await;
    // Nobody goes on before it is committed.
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    let forced = "SELECT held FROM lock_store.force_release('lock:k')";
    session.batch_execute(forced).await.unwrap();
    let shares = session.query_one("SELECT count(*) FROM lock_store.share", &[]);
    let granted: i64 = shares.await.unwrap().get(0);
    assert_eq!(granted, 64);
    session.batch_execute("COMMIT").await.unwrap();
    let guards: Result<Vec<_>, _> = crowd.join_all().await.into_iter().collect();
    assert_eq!(guards.unwrap().len(), MANY);
    drop(guard);
}

/// What requests of one client for one key cost the server: a few statements, not one for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_of_one_client_go_together() {
    const MANY: usize = 100;
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let mut guards = Vec::new();
    for _ in 0..MANY {
        guards.push(client.rw_lock("k").read().acquire().await.unwrap());
    }
    let row = row_of_k(&server).await;
    let mut releases: JoinSet<_> = guards.into_iter().map(|guard| guard.release()).collect();
    // It gives up at times, and comes again.
    eventually("they wait together", async || {
        let waiting = server.number(AT_THE_ROW).await;
        assert!(waiting <= 1, "{waiting}");
        waiting == 1
    })
    .await;
    row.batch_execute("COMMIT").await.unwrap();
    while let Some(released) = releases.join_next().await {
        released.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_does_not_lock_the_row_and_is_seen_all_the_same() {
    let server = PostgresServer::start().await;
    let (one, other) = (
        client(&server.app_url()).await,
        client(&server.app_url()).await,
    );
    for is_shared in [false, true] {
        let (held, wanted) = match is_shared {
            false => (one.lock("k").fair(), other.lock("k").fair()),
            true => (one.rw_lock("k").write(), other.rw_lock("k").read()),
        };
        let guard = held.acquire().await.unwrap();
        let waits = tokio::spawn(async move { wanted.wait(LONG).acquire().await });
        let place = "SELECT count(*) FROM lock_store.place";
        eventually("it waits", async || server.number(place).await == 1).await;
        let row = row_of_k(&server).await;
        for _ in 0..2 {
            let now = server.session().await;
            let now = now.query_one("SELECT clock_timestamp()::text", &[]).await;
            let now: String = now.unwrap().get(0);
            eventually("it is seen again", async || {
                server
                    .number(&format!("{place} WHERE seen > '{now}'"))
                    .await
                    == 1
            })
            .await;
        }
        // One that only tries does not either.
        let tried = match is_shared {
            false => one.lock("k").try_acquire().await,
            true => one.rw_lock("k").read().try_acquire().await,
        };
        assert!(tried.unwrap().is_none());
        row.batch_execute("COMMIT").await.unwrap();
        guard.release().await.unwrap();
        waits.await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_latch_does_not_lock_its_row() {
    let server = PostgresServer::start().await;
    let (one, other) = (
        client(&server.app_url()).await,
        client(&server.app_url()).await,
    );
    one.latch("k").set(1).await.unwrap();
    let waits = tokio::spawn(async move { other.latch("k").wait(LONG).await });
    let place = "SELECT count(*) FROM lock_store.latch_place";
    eventually("it waits", async || server.number(place).await == 1).await;
    let row = row_of_k(&server).await;
    let begun = Instant::now();
    while begun.elapsed() < 2 * SHORT + SHORT / 2 {
        assert_eq!(server.number(AT_THE_ROW).await, 0);
    }
    row.batch_execute("COMMIT").await.unwrap();
    one.latch("k").count_down().await.unwrap();
    waits.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_and_a_renewal_that_wait_for_the_row_are_repeated_within_their_time() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let lease = 6 * SHORT;
    let lock = client.lock("k").lease(lease).renew(true);
    let guard = lock.acquire().await.unwrap();
    let row = row_of_k(&server).await;
    let begun = Instant::now();
    // Its renewal is due after a third of the lease.
    await_row_lock(&server).await;
    while begun.elapsed() < lease / 2 {
        tokio::time::sleep(SHORT / 20).await;
    }
    row.batch_execute("COMMIT").await.unwrap();
    eventually("the lease has passed", async || begun.elapsed() > lease).await;
    assert!(guard.is_held());
    let row = row_of_k(&server).await;
    let released = tokio::spawn(guard.release());
    let begun = Instant::now();
    await_row_lock(&server).await;
    while begun.elapsed() < SHORT {
        assert!(!released.is_finished());
        tokio::time::sleep(SHORT / 20).await;
    }
    row.batch_execute("COMMIT").await.unwrap();
    released.await.unwrap().unwrap();
}

/// A client that is told of a row that others keep well before it gives up a command: the functions
/// wait for 200 ms, and a release of the same client may be before a request.
async fn soon_told(server: &PostgresServer) -> LockClient {
    let builder = builder(&server.app_url()).command_timeout(4 * SHORT);
    builder.connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_can_not_get_at_the_row_learns_that_the_server_answers_and_no_check_is_blamed() {
    let server = PostgresServer::start().await;
    let client = soon_told(&server).await;
    let guard = client.lock("k").fenced().acquire().await.unwrap();
    let row = row_of_k(&server).await;
    let released = guard.release().await.unwrap_err();
    let said = contended(&released);
    assert!(
        said.contains("answers") && !said.contains("lock_check"),
        "{said}"
    );
    // Free, as far as anybody sees: its wait is over, and it never got at the row.
    row.batch_execute("UPDATE lock_store.hold SET owner = NULL, ends = '-infinity'; COMMIT")
        .await
        .unwrap();
    let row = row_of_k(&server).await;
    let refused = client
        .lock("k")
        .wait(8 * SHORT)
        .acquire()
        .await
        .unwrap_err();
    let said = contended(&refused);
    assert!(!said.contains("lock_check"), "{said}");
    row.batch_execute("COMMIT").await.unwrap();
    client.lock("k").wait(LONG).run(async {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_behind_an_open_check_says_so() {
    let server = PostgresServer::start().await;
    let client = soon_told(&server).await;
    let guard = client.lock("k").fenced().acquire().await.unwrap();
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    session.simple_query(&check(&guard)).await.unwrap();
    let said = contended(&guard.release().await.unwrap_err());
    assert!(said.contains("open lock_check"), "{said}");
    session.batch_execute("COMMIT").await.unwrap();
    client.lock("k").wait(LONG).run(async {}).await.unwrap();
}

/// By an operator, or by a user's `statement_timeout` that is shorter than the functions wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_canceled_at_the_row_is_repeated_and_costs_no_session() {
    let server = PostgresServer::start().await;
    let client = client(&format!("{}?connections=1&listen=off", server.app_url())).await;
    client.lock("k").fenced().run(async {}).await.unwrap();
    let session = "SELECT pid::bigint FROM pg_stat_activity WHERE usename = 'app'";
    let before = server.number(session).await;
    let row = row_of_k(&server).await;
    let waits = tokio::spawn(client.lock("k").wait(LONG).acquire());
    let cancels = AT_THE_ROW.replace("count(*)", "count(pg_cancel_backend(pid))");
    eventually("it is canceled", async || server.number(&cancels).await > 0).await;
    row.batch_execute("ROLLBACK").await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(server.number(session).await, before);
}

//! The functions for the common case: what others do meanwhile, and which commits are waited for.

use lock_runtime::LockError;
use lock_testkit::{PostgresServer, eventually};
use tokio_postgres::{Client, NoTls};

use crate::client;
use crate::crowd::await_row_lock;

/// In 2096.
pub(crate) const DEADLINE: &str = "4000000000000000";

/// On a busy machine, a test may keep a row for longer than a request waits for one.
const PATIENT: &str = "ALTER FUNCTION lock_store.acquire SET lock_timeout = '60s'";

/// A session with an open transaction, in which this is done.
async fn open(server: &PostgresServer, sql: &str) -> Client {
    let session = server.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    session.query_one(sql, &[]).await.unwrap();
    session
}

fn owner(byte: u8) -> String {
    format!("decode(repeat('{byte:02x}', 24), 'hex')")
}

fn take(lease: &str) -> String {
    let owner = owner(7);
    format!("SELECT lock_store.acquire_first('lock:k', {owner}, {lease}, {DEADLINE})")
}

fn give_back() -> String {
    let owner = owner(7);
    format!("SELECT lock_store.release_first('lock:k', {owner})")
}

#[tokio::test]
async fn a_plain_cycle_calls_them_and_no_other_function_of_locks() {
    let server = PostgresServer::start().await;
    server.run("ALTER SYSTEM SET track_functions = 'pl'").await;
    server.restart().await;
    let client = client(&server.app_url()).await;
    client.lock("k").run(async {}).await.unwrap();
    let calls = async |names: &str| {
        let calls = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_user_functions";
        let query = format!("{calls} WHERE funcname IN ({names})");
        server.number(&query).await
    };
    // A session counts in its own time, before 15 when it is used again.
    eventually("both are counted", async || {
        client.inspect("other").await.unwrap();
        calls("'acquire_first', 'release_first'").await == 2
    })
    .await;
    assert_eq!(calls("'acquire', 'release'").await, 0);
}

/// The row is not there yet, and it is not yet gone: the end of the other's transaction decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_take_a_lock_at_once_one_gets_it() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    for (before, sql, end, is_free) in [
        ("SELECT", take("30000000"), "COMMIT", false),
        (
            "DELETE FROM lock_store.hold",
            take("30000000"),
            "ROLLBACK",
            true,
        ),
        (&take("30000000"), give_back(), "ROLLBACK", false),
        ("SELECT", give_back(), "COMMIT", true),
    ] {
        server.run(before).await;
        let session = open(&server, &sql).await;
        let lock = client.lock("k");
        let tries = tokio::spawn(async move { lock.try_acquire().await });
        await_row_lock(&server).await;
        session.batch_execute(end).await.unwrap();
        let guard = tries.await.unwrap().unwrap();
        assert_eq!(guard.is_some(), is_free, "{sql}, {end}");
        if let Some(guard) = guard {
            guard.release().await.unwrap();
        }
    }
}

/// The row is there, and free. What the other has made of it counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_take_a_free_row_at_once_one_gets_it() {
    let server = PostgresServer::start().await;
    server.run(PATIENT).await;
    let client = client(&server.app_url()).await;
    let other = owner(7);
    let acquire = |of: &str, tokens: u32| {
        format!(
            "SELECT lock_store.acquire('lock:k', {other}, {of}, 30000000, 30000000, NULL,
                {tokens}, 0, NULL, {DEADLINE})::text"
        )
    };
    let release = format!("SELECT lock_store.release('lock:k', {other}, NULL, NULL, 0)::text");
    for (sql, then, is_free) in [
        (acquire("NULL, NULL", 0), "SELECT", false),
        (acquire("1, 2", 0), "SELECT", false),
        (acquire("NULL, NULL", 1_000_000_000), release.as_str(), true),
    ] {
        server
            .run(
                "DELETE FROM lock_store.share; DELETE FROM lock_store.hold;
                INSERT INTO lock_store.hold (name, last) VALUES ('lock:k', 7)",
            )
            .await;
        let session = open(&server, &sql).await;
        session.batch_execute(then).await.unwrap();
        let lock = client.lock("k").fenced();
        let tries = tokio::spawn(async move { lock.try_acquire().await });
        await_row_lock(&server).await;
        let last = "SELECT last FROM lock_store.hold";
        let last: i64 = session.query_one(last, &[]).await.unwrap().get(0);
        session.batch_execute("COMMIT").await.unwrap();
        match tries.await.unwrap() {
            Ok(Some(guard)) if is_free => {
                let token = u64::from(guard.fencing_token().unwrap());
                assert!(token > last.cast_unsigned(), "{token} after {last}");
                guard.release().await.unwrap();
            }
            Ok(None) | Err(LockError::KeyConflict { .. }) if !is_free => {}
            got => panic!("{sql}: {got:?}"),
        }
    }
}

/// A sweep removes what was used last, and the clock was set back by more than it keeps such rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_later_than_the_one_whose_row_is_swept_meanwhile() {
    let server = PostgresServer::start().await;
    server.run(PATIENT).await;
    let client = client(&server.app_url()).await;
    let last: i64 = 4_000_000_000_000_000;
    server
        .run(&format!(
            "INSERT INTO lock_store.hold (name, last) VALUES ('lock:k', {last})"
        ))
        .await;
    let session = server.session().await;
    session
        .batch_execute(&format!(
            "BEGIN; DELETE FROM lock_store.hold; UPDATE lock_store.meta SET floor = {last}"
        ))
        .await
        .unwrap();
    let lock = client.lock("k").fenced();
    let tries = tokio::spawn(async move { lock.try_acquire().await });
    await_row_lock(&server).await;
    session.batch_execute("COMMIT").await.unwrap();
    let guard = tries.await.unwrap().unwrap().unwrap();
    let token = u64::from(guard.fencing_token().unwrap());
    assert!(token > last.cast_unsigned(), "{token}");
}

/// Its renewal is under way when the lease ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_latch_is_not_set_beside_a_share_that_is_just_renewed() {
    let server = PostgresServer::start().await;
    let patient = "ALTER FUNCTION lock_store.latch_set SET lock_timeout = '60s'";
    server.run(patient).await;
    let (share, reader) = ("1, 2147483647", owner(7));
    server
        .run(&format!(
            "SELECT lock_store.acquire('lock:k', {reader}, {share}, 500000, 500000, NULL, 0, 0,
                NULL, {DEADLINE})"
        ))
        .await;
    let renew = format!("SELECT lock_store.renew('lock:k', {reader}, {share}, 30000000)");
    let session = open(&server, &renew).await;
    session.batch_execute("SELECT pg_sleep(0.6)").await.unwrap();
    let other = server.session().await;
    let set = format!(
        "SELECT code FROM lock_store.latch_set('lock:k', {}, 0, {DEADLINE}, 1, 60000000)",
        owner(9)
    );
    let sets = tokio::spawn(async move { other.query_one(&set, &[]).await });
    eventually("it waits for the renewal", async || {
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        server.number(waits).await > 0
    })
    .await;
    session.batch_execute("COMMIT").await.unwrap();
    let code: i32 = sets.await.unwrap().unwrap().get(0);
    assert_eq!(code, 2, "a lock is there");
}

/// What a statement is told that waits for this session's rows for longer than 0.3 s.
async fn past_its_deadline(server: &PostgresServer, session: Client, tries: String) -> String {
    let (late, driver) = tokio_postgres::connect(&server.app_url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(driver);
    let late = tokio::spawn(async move { late.query_one(&tries, &[]).await });
    await_row_lock(server).await;
    // By the server's clock.
    let sleep = session.batch_execute("SELECT pg_sleep(0.4)").await;
    sleep.unwrap();
    session.batch_execute("ROLLBACK").await.unwrap();
    let refused = late.await.unwrap().unwrap_err();
    refused.code().unwrap().code().to_owned()
}

/// The other one is rolled back after the deadline, and leaves the lock free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_waited_for_another_past_its_deadline_takes_nothing() {
    let server = PostgresServer::start().await;
    for (function, asks) in [
        ("acquire_first", "30000000"),
        (
            "acquire",
            "NULL, NULL, 30000000, 30000000, NULL, 0, 0, NULL",
        ),
    ] {
        let patient = format!("ALTER FUNCTION lock_store.{function} SET lock_timeout = '60s'");
        server.run(&patient).await;
        let session = open(&server, &take("30000000")).await;
        let tries = format!(
            "SELECT lock_store.{function}('lock:k', {}, {asks},
                lock_store.micros(clock_timestamp()) + 300000)::text",
            owner(9)
        );
        let refused = past_its_deadline(&server, session, tries).await;
        assert_eq!(refused, "LK001", "{function}");
        let rows = server.number("SELECT count(*) FROM lock_store.hold").await;
        assert_eq!(rows, 0, "{function}");
    }
}

/// What waits after the deadline was looked at: here for a share that has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_waited_for_a_share_past_its_deadline_takes_nothing() {
    let server = PostgresServer::start().await;
    for function in ["acquire", "acquire_all"] {
        let patient = format!("ALTER FUNCTION lock_store.{function} SET lock_timeout = '60s'");
        server.run(&patient).await;
    }
    let now = "lock_store.micros(clock_timestamp())";
    let acquire = |by: u8, of: &str, queue: u8, deadline: &str| {
        format!(
            "SELECT code::text FROM lock_store.acquire('lock:k', {}, {of}, 30000000, 30000000, \
             NULL, 0, {queue}, NULL, {deadline})",
            owner(by)
        )
    };
    let reader = |by: u8| acquire(by, "1, 2147483647", 0, DEADLINE);
    let end = format!(
        "UPDATE lock_store.share SET ends = '-infinity' WHERE owner = {}",
        owner(1)
    );
    let soon = format!("{now} + 300000");
    for (others, tries) in [
        // One that takes the lock, one that takes several, and one that takes a place.
        (reader(1), acquire(2, "NULL, NULL", 0, &soon)),
        (
            reader(1),
            format!(
                "SELECT code::text FROM lock_store.acquire_all(ARRAY['lock:k'::bytea], \
                 ARRAY[{}], ARRAY[30000000::bigint], ARRAY[0], ARRAY[true], {soon})",
                owner(3)
            ),
        ),
        (
            format!("{}; {}", reader(1), reader(4)),
            acquire(5, "2147483647, 2147483647", 2, &soon),
        ),
    ] {
        server.run(&format!("{others}; {end}")).await;
        let row = format!(
            "SELECT 1 FROM lock_store.share WHERE owner = {} FOR UPDATE",
            owner(1)
        );
        let session = open(&server, &row).await;
        let refused = past_its_deadline(&server, session, tries.clone()).await;
        assert_eq!(refused, "LK001", "{tries}");
        let taken = "SELECT (SELECT count(*) FROM lock_store.hold WHERE owner IS NOT NULL)
            + (SELECT count(*) FROM lock_store.place)";
        assert_eq!(server.number(taken).await, 0, "{tries}");
    }
}

/// The release has found the row as it was before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_beside_one_that_takes_a_place_hands_the_lock_over() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let guard = client.lock("k").acquire().await.unwrap();
    let waiter = owner(9);
    let waits = format!(
        "SELECT lock_store.acquire('lock:k', {waiter}, NULL, NULL, 30000000, 30000000, NULL, 0, 2,
            NULL, {DEADLINE})"
    );
    let session = open(&server, &waits).await;
    let release = tokio::spawn(guard.release());
    await_row_lock(&server).await;
    session.batch_execute("COMMIT").await.unwrap();
    release.await.unwrap().unwrap();
    let has = format!("SELECT count(*) FROM lock_store.hold WHERE owner = {waiter}");
    assert_eq!(server.number(&has).await, 1);
}

/// After a crash the lock is free at the end of its lease at the latest, so only a long one counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_release_of_a_short_lease_is_not_waited_for_until_it_is_on_disk() {
    let server = PostgresServer::start().await;
    for (lease, ends, waited_for) in [
        ("30000000", true, "off"),
        ("60000000", true, "on"),
        ("30000000", false, "on"),
    ] {
        let session = open(&server, &take(lease)).await;
        let ended: bool = match ends {
            true => session.query_one(&give_back(), &[]).await.unwrap().get(0),
            false => {
                let other = give_back().replace("lock:k", "lock:l");
                session.query_one(&other, &[]).await.unwrap().get(0)
            }
        };
        assert_eq!(ended, ends);
        let waits = session.query_one("SHOW synchronous_commit", &[]).await;
        let waits: String = waits.unwrap().get(0);
        assert_eq!(waits, waited_for, "{lease}");
        session.batch_execute("ROLLBACK").await.unwrap();
    }
}

/// What was waited for is on the disk, and with it what came before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_granted_behind_such_a_release_is_there_after_a_crash() {
    let server = PostgresServer::start().await;
    let session = server.session().await;
    let take = take("30000000");
    let next = take.replace(&owner(7), &owner(9));
    for sql in [
        // Nothing is written before somebody waits for it.
        "ALTER SYSTEM SET wal_writer_delay = '10s'",
        "SELECT pg_reload_conf()",
        &take,
        &give_back(),
        &next,
    ] {
        session.simple_query(sql).await.unwrap();
    }
    server.kill();
    server.restart().await;
    let has = format!(
        "SELECT count(*) FROM lock_store.hold WHERE owner = {}",
        owner(9)
    );
    assert_eq!(server.number(&has).await, 1);
}

//! What is left of what nobody uses any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::Rate;
use lock_testkit::{PostgresServer, eventually, eventually_within};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use crate::{builder, client};

/// From now on, what has ended is removed after a tenth of a second.
async fn keep_shortly(server: &PostgresServer) {
    server
        .run("UPDATE lock_store.meta SET keeps = '100 milliseconds'")
        .await;
}

async fn rows(server: &PostgresServer) -> usize {
    let all = [
        "hold",
        "share",
        "place",
        "rate",
        "pass_log",
        "latch",
        "latch_place",
        "latch_call",
    ];
    let all = all.map(|table| format!("(SELECT count(*) FROM lock_store.{table})"));
    server.number(&format!("SELECT {}", all.join(" + "))).await
}

const ENDED: &str = "INSERT INTO lock_store.hold (name, last)
    SELECT convert_to('lock:' || i, 'UTF8'), 7 FROM generate_series(1, 30000) i;
    INSERT INTO lock_store.rate (name, at, turn, debt)
    SELECT convert_to('lock:' || i, 'UTF8'), 1, 0, 0 FROM generate_series(1, 30000) i;
    INSERT INTO lock_store.pass_log (name, at, times, counts, ends)
    SELECT convert_to('lock:' || i, 'UTF8'), 1, '{0}', '{1}', 1 FROM generate_series(1, 30000) i";

/// More than one sweep removes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_goes_on_as_long_as_there_is_more() {
    let server = PostgresServer::start().await;
    server.run(ENDED).await;
    // Of a client that has just come, as a short program does.
    let _client = client(&server.app_url()).await;
    eventually("all is removed", async || rows(&server).await == 0).await;
}

/// A session that has swept empty tables for long sweeps a full one as a new session does: it looks
/// at what it removes, and not at all rows for each.
#[tokio::test]
async fn a_sweep_is_planned_for_what_is_there_now() {
    let server = PostgresServer::start().await;
    server
        .run("UPDATE lock_store.meta SET keeps = '0 seconds'")
        .await;
    let (session, driver) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(driver);
    let sweep = "SELECT lock_store.sweep()";
    for _ in 0..10 {
        session.batch_execute(sweep).await.unwrap();
    }
    let all = format!("BEGIN; {ENDED}; {sweep}");
    session.batch_execute(&all).await.unwrap();
    // All of `hold` is looked at once more, for rows that have some elsewhere.
    for (table, all) in [("rate", 30_000), ("pass_log", 30_000), ("hold", 60_000)] {
        let looked = "SELECT seq_tup_read FROM pg_stat_xact_all_tables
            WHERE schemaname = 'lock_store' AND relname = $1";
        let looked: i64 = session.query_one(looked, &[&table]).await.unwrap().get(0);
        assert!(looked < all, "{looked} rows of {table}");
    }
}

/// Each key is used once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cleaning_keeps_up_with_those_who_write() {
    let server = PostgresServer::start().await;
    keep_shortly(&server).await;
    let made = Arc::<AtomicUsize>::default();
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let (client, made) = (client(&server.app_url()).await, Arc::clone(&made));
        writers.spawn(async move {
            for number in 0.. {
                let lock = client.lock(format!("{writer}:{number}")).fenced();
                lock.run(async {}).await.unwrap();
                made.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let limit = Duration::from_secs(120);
    eventually_within(limit, "little is left of much", async || {
        let made = made.load(Ordering::Relaxed);
        made > 1000 && rows(&server).await < made / 3
    })
    .await;
    writers.abort_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_database_is_cleaned_also_by_a_client_whose_connections_have_ended() {
    let server = PostgresServer::start().await;
    keep_shortly(&server).await;
    let client = builder(&format!("{}?listen=off", server.app_url()));
    let _client = client.connect().await.unwrap();
    server.end_connections().await;
    server.run(ENDED).await;
    eventually("all is removed", async || rows(&server).await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_of_a_dead_client_goes_with_its_row() {
    let server = PostgresServer::start().await;
    keep_shortly(&server).await;
    // Its holder has gone as well, and nobody uses the key again.
    server
        .run(
            "INSERT INTO lock_store.hold (name, owner, special) VALUES ('lock:k', '\\x01', true);
             INSERT INTO lock_store.place
             SELECT 'lock:k', i, int4send(i), int4send(i), NULL, NULL, '1 s', 'infinity', 0,
                clock_timestamp() - interval '1 s', NULL
             FROM generate_series(1, 3) i",
        )
        .await;
    let _client = client(&server.app_url()).await;
    eventually("all is removed", async || rows(&server).await == 0).await;
}

/// Whoever waits is seen again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_removes_no_place_of_one_who_waits() {
    let server = PostgresServer::start().await;
    server
        .run("UPDATE lock_store.meta SET keeps = '3 seconds'")
        .await;
    let (one, other) = (
        client(&server.app_url()).await,
        client(&server.app_url()).await,
    );
    let held = one.lock("k").acquire().await.unwrap();
    let waits = other.lock("k").wait(Duration::from_secs(60));
    let waits = tokio::spawn(async move { waits.acquire().await });
    let place = "SELECT count(*) FROM lock_store.place";
    eventually("it waits", async || server.number(place).await == 1).await;
    let begun = std::time::Instant::now();
    eventually("sweeps pass", async || {
        assert_eq!(server.number(place).await, 1);
        begun.elapsed() > Duration::from_secs(8)
    })
    .await;
    held.release().await.unwrap();
    drop(waits.await.unwrap().unwrap());
}

/// What nobody asks for any more is removed; a hold in shares is not, whatever stood in its row
/// before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_removes_what_has_ended_and_no_hold() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    for key in ["over", "shared"] {
        let guard = client.lock(key).fenced().acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    let short = client
        .rw_lock("lapsed")
        .read()
        .lease(Duration::from_secs(1));
    let _lapsed = short.renew(false).acquire().await.unwrap();
    let _reader = client.rw_lock("shared").read().acquire().await.unwrap();
    // Long ago, as the sweep sees it. It runs once a minute.
    server
        .run(
            "UPDATE lock_store.hold SET last = 1 WHERE last > 0;
             UPDATE lock_store.meta SET swept = '-infinity'",
        )
        .await;
    let gone = async |name: &str| {
        let all = format!("SELECT count(*) FROM lock_store.hold WHERE name = 'lock:{name}'");
        server.number(&all).await == 0
    };
    eventually("what has ended is removed", async || {
        server
            .run(
                "UPDATE lock_store.meta SET swept = '-infinity';
                 SELECT lock_store.sweep()",
            )
            .await;
        gone("over").await && gone("lapsed").await
    })
    .await;
    assert!(!gone("shared").await);
    let writer = client
        .rw_lock("shared")
        .write()
        .try_acquire()
        .await
        .unwrap();
    assert!(writer.is_none(), "a writer beside a reader");
}

/// At most 16 bytes for each pass, whether it has a line of its own or shares one. The row and its
/// two arrays have some more, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_limit_has_at_most_sixteen_bytes_for_each_pass() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    for limit in [1, 20, 100, 1000] {
        let key = format!("limit {limit}");
        let limiter = client.rate_limiter(key.clone(), Rate::at_most(limit, month));
        for _ in 0..limit {
            limiter.acquire().await.unwrap();
        }
        assert!(limiter.acquire().await.is_err());
        let size = server
            .number(&format!(
                "SELECT pg_column_size(p.*)::bigint FROM lock_store.pass_log p
                 WHERE name = convert_to('lock:{key}', 'UTF8')"
            ))
            .await;
        println!("{size} bytes for {limit} passes");
        assert!(0 < size && size <= 128 + 16 * limit as usize, "{size}");
    }
}

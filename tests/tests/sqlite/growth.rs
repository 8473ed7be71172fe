//! What is over does not stay: the log, rows of keys that never come again, rows of the dead.

use std::fs;
use std::time::Duration;

use lock_runtime::Rate;
use lock_testkit::{ChildProcess, SqliteFile, eventually, eventually_within};

use crate::{client, until_waiting, worker};

/// Rows that may wait for their cleaning, of each table.
const WAITING: usize = 20_000;

/// The size of the log when all is well is 4 MB and a transaction.
const LOG: u64 = 5 << 20;

fn log_size(file: &SqliteFile) -> u64 {
    let log = fs::metadata(file.folder().join("locks.db-wal"));
    log.map_or(0, |log| log.len())
}

/// Returns how many keys were used. Looks at the log meanwhile.
async fn spent(file: &SqliteFile, kind: &str, processes: usize, millis: u64) -> usize {
    let mut workers: Vec<ChildProcess> = Vec::new();
    for _ in 0..processes {
        workers.push(worker(&file.url()).await);
    }
    for worker in &mut workers {
        worker.send(&format!("spend {kind} 32 {millis}"));
    }
    let mut spent = 0;
    let mut largest = 0;
    for worker in &mut workers {
        let event = loop {
            largest = largest.max(log_size(file));
            let wait = worker.wait_for("spent");
            if let Ok(event) = tokio::time::timeout(Duration::from_millis(20), wait).await {
                break event;
            }
        };
        spent += event.text.parse::<usize>().unwrap();
    }
    println!("{spent} keys, {kind}: the log had up to {largest} bytes");
    assert!(largest < LOG, "{largest}");
    spent
}

#[tokio::test]
async fn the_log_stays_small_while_three_processes_write() {
    let file = SqliteFile::new();
    spent(&file, "rate", 3, 5000).await;
}

#[tokio::test]
async fn rows_of_keys_that_never_come_again_are_cleaned_as_fast_as_they_are_made() {
    for (kind, table) in [
        ("fenced", "fence"),
        ("rate", "rate"),
        ("kept", "hold"),
        ("latch", "latch"),
    ] {
        let file = SqliteFile::new();
        let spent = spent(&file, kind, 2, 3000).await;
        let rows = file.number(&format!("SELECT count(*) FROM {table}"));
        println!("{rows} of {spent} rows are left");
        assert!(rows < WAITING.min(spent / 2), "{rows} of {spent}, {kind}");
    }
}

/// Nobody asks for anything: one client is there.
#[tokio::test]
async fn an_idle_database_is_cleaned() {
    let file = SqliteFile::new();
    let _client = client(&file.url()).await;
    let rows = file.connection();
    // What would be there when its time is over.
    rows.execute_batch(
        "CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (
            SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000
         ) SELECT i, randomblob(16) AS client FROM n;
         BEGIN IMMEDIATE;
         INSERT INTO fence (name, token) SELECT 'lock:' || i, 1 FROM n;
         INSERT INTO rate (name, at, turn, debt, ends) SELECT 'lock:' || i, 1, 1, 1, 1 FROM n;
         INSERT INTO pass_log (name, at, lines, ends) SELECT 'lock:' || i, 1, x'', 1 FROM n;
         INSERT INTO call (name, client, request, left, ends) SELECT 'lock:' || i, client, 1, 1, 1
            FROM n;
         INSERT INTO latch (name, count, generation, opened, ends)
            SELECT 'lock:' || i, 1, 1, 0, 1 FROM n;
         INSERT INTO hold (name, client, request, kept, ends) SELECT 'lock:' || i, client, 1, 1, 1
            FROM n;
         INSERT INTO hold (name, client, request, kept, session, ends)
            SELECT 'lock:' || i, client, 2, 0, 1, 1 FROM n;
         INSERT INTO place (name, number, session, client, request, first_lease, ends, tokens,
            heard) SELECT 'lock:' || i, 1, 1, client, 1, 1, 1, 0, 1 FROM n;
         INSERT INTO latch_place (name, client, request, session, ends)
            SELECT 'lock:' || i, client, 1, 1, 1 FROM n;
         COMMIT",
    )
    .unwrap();
    let left = "SELECT (SELECT count(*) FROM fence) + (SELECT count(*) FROM rate)
        + (SELECT count(*) FROM pass_log)
        + (SELECT count(*) FROM call) + (SELECT count(*) FROM latch)
        + (SELECT count(*) FROM hold) + (SELECT count(*) FROM place)
        + (SELECT count(*) FROM latch_place)";
    assert!(file.number(left) > 100_000);
    let limit = Duration::from_secs(120);
    eventually_within(limit, "nothing is left", async || file.number(left) == 0).await;
}

/// Nobody else wants the keys of the dead.
#[tokio::test]
async fn places_and_holds_of_a_dead_process_go_although_nobody_asks_for_their_keys() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let held = client.lock("k").acquire().await.unwrap();
    let mut dies = worker(&file.url()).await;
    dies.send("hold own own");
    dies.wait_for("held own").await;
    dies.send("hold k k wait=60000");
    until_waiting(&client, "k", 1).await;
    dies.kill();
    let left = "SELECT (SELECT count(*) FROM place) + (SELECT count(*) FROM client)
        + (SELECT count(*) FROM hold)";
    eventually("only this client and its hold are left", async || {
        file.number(left) == 2
    })
    .await;
    held.release().await.unwrap();
}

/// At most 16 bytes for each pass, whether it has a line of its own or shares one.
#[tokio::test]
async fn the_log_of_a_limit_has_at_most_sixteen_bytes_for_each_pass() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    for limit in [1, 20, 100, 1000] {
        let key = format!("limit {limit}");
        let limiter = client.rate_limiter(key.clone(), Rate::at_most(limit, month));
        for _ in 0..limit {
            limiter.acquire().await.unwrap();
        }
        assert!(limiter.acquire().await.is_err());
        let size = file.number(&format!(
            "SELECT length(lines) FROM pass_log WHERE name LIKE '%{key}'"
        ));
        println!("{size} bytes for {limit} passes");
        assert!(0 < size && size <= 16 * limit as usize, "{size}");
    }
}

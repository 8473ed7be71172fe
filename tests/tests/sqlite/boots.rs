//! The machine starts again, and its wall clock may show anything then.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_runtime::{LockClient, Rate};
use lock_testkit::{SqliteFile, eventually};

use crate::{client, config, is_free, worker};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// As if what is in the file was written before the machine has started.
fn machine_starts_again(file: &SqliteFile) {
    let changed = file
        .connection()
        .execute("UPDATE machine SET boot = 'another'", ())
        .unwrap();
    assert_eq!(changed, 1);
}

async fn until_alone(file: &SqliteFile) {
    eventually("all clients are gone", async || {
        file.number("SELECT count(*) FROM client") == 0
    })
    .await;
}

#[tokio::test]
async fn what_was_held_before_the_machine_started_is_over() {
    let file = SqliteFile::new();
    let before = client(&file.url()).await;
    let kept = before.lock("k").hold_at_least(DAY / 2);
    kept.acquire().await.unwrap().release().await.unwrap();
    before.latch("l").set(1).await.unwrap();
    let rate = Rate::per(1, DAY);
    before.rate_limiter("r", rate).acquire().await.unwrap();
    drop(before);
    until_alone(&file).await;
    // It all outlives its process, in the same boot.
    let same = client(&file.url()).await;
    assert!(!is_free(&same, "k").await);
    assert_eq!(same.latch("l").count().await.unwrap(), Some(1));
    assert!(same.rate_limiter("r", rate).acquire().await.is_err());
    drop(same);
    until_alone(&file).await;
    machine_starts_again(&file);
    let after = client(&file.url()).await;
    assert!(is_free(&after, "k").await);
    assert_eq!(after.latch("l").count().await.unwrap(), None);
    after.rate_limiter("r", rate).acquire().await.unwrap();
}

/// What a process held that died together with the machine.
#[tokio::test]
async fn a_hold_of_a_process_that_died_with_the_machine_is_over() {
    let file = SqliteFile::new();
    let mut holder = worker(&file.url()).await;
    holder.send("hold a k");
    holder.wait_for("held a").await;
    holder.kill();
    assert_eq!(file.number("SELECT count(*) FROM hold"), 1);
    // Its lock file is gone too, so only the boot can tell.
    std::fs::remove_dir_all(file.folder().join("locks.db-clients")).unwrap();
    let forgotten = "UPDATE client SET process = NULL";
    file.connection().execute(forgotten, ()).unwrap();
    let same = client(&file.url()).await;
    assert!(!is_free(&same, "k").await, "nothing proves that it is over");
    drop(same);
    eventually("only the dead one is left", async || {
        file.number("SELECT count(*) FROM client") == 1
    })
    .await;
    machine_starts_again(&file);
    eventually("it is over", async || {
        let client = client(&file.url()).await;
        is_free(&client, "k").await
    })
    .await;
}

async fn token(client: &LockClient) -> u64 {
    let guard = client.lock("k").fenced().acquire().await.unwrap();
    let token = guard.fencing_token().unwrap();
    guard.release().await.unwrap();
    token.into()
}

/// The clock of a machine without a battery begins in the past.
#[tokio::test]
async fn tokens_rise_over_a_start_with_a_clock_that_was_set_back() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ahead = u64::try_from((now + 365 * DAY).as_micros()).unwrap();
    for forgotten in [false, true] {
        let file = SqliteFile::new();
        let before = client(&file.url()).await;
        assert!(token(&before).await < ahead);
        drop(before);
        until_alone(&file).await;
        // As if that had been a year later.
        let last = match forgotten {
            false => "UPDATE fence SET token = ?1",
            true => "UPDATE machine SET floor = ?1",
        };
        let last_token = i64::try_from(ahead).unwrap();
        file.connection().execute(last, [last_token]).unwrap();
        if forgotten {
            file.connection().execute("DELETE FROM fence", ()).unwrap();
        }
        machine_starts_again(&file);
        let after = client(&file.url()).await;
        assert!(token(&after).await > ahead, "forgotten: {forgotten}");
    }
}

/// Two kernels with one file: neither knows the time of the other's leases.
#[tokio::test]
async fn a_file_that_another_machine_uses_is_refused() {
    let file = SqliteFile::new();
    let other = client(&file.url()).await;
    let held = other.lock("k").acquire().await.unwrap();
    machine_starts_again(&file);
    let refused = LockClient::builder().url(file.url()).connect().await;
    let text = config(refused);
    assert!(text.contains("in use by another machine"), "{text}");
    assert!(held.is_held());
    held.release().await.unwrap();
}

/// Boot time does not go back. What is in the file may say otherwise.
#[tokio::test]
async fn a_bucket_of_a_time_to_come_costs_no_more_than_the_bucket() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let limiter = client.rate_limiter("k", Rate::per_second(20).burst(1));
    limiter.acquire().await.unwrap();
    let changed = file
        .connection()
        .execute(
            "UPDATE rate SET at = at + 3600000000000, ends = ends + 3600000000000",
            (),
        )
        .unwrap();
    assert_eq!(changed, 1);
    assert!(limiter.acquire().await.is_err());
    eventually("it passes soon", async || {
        limiter.try_acquire().await.unwrap().passed()
    })
    .await;
}

#[tokio::test]
async fn a_log_of_a_time_to_come_costs_no_more_than_the_window() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let limiter = client.rate_limiter("k", Rate::at_most(2, Duration::from_millis(500)));
    limiter.permits(2).await.unwrap();
    let changed = file
        .connection()
        .execute(
            "UPDATE pass_log SET at = at + 3600000000000, ends = ends + 3600000000000",
            (),
        )
        .unwrap();
    assert_eq!(changed, 1);
    assert!(limiter.acquire().await.is_err());
    eventually("it passes soon", async || {
        limiter.try_permits(2).await.unwrap().passed()
    })
    .await;
}

//! The machine starts again, and its wall clock may show anything then.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_runtime::{LockClient, Rate};
use lock_testkit::{ChildProcess, SqliteFile, eventually, left_out};

use crate::{client, config, is_free, until_waiting, worker};

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
    fs::remove_dir_all(file.folder().join("locks.db-clients")).unwrap();
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

/// As when its file can't be opened for want of rights or handles.
#[tokio::test]
async fn a_client_of_which_nobody_can_tell_whether_it_lives_is_not_taken_for_dead() {
    let file = SqliteFile::new();
    let other = client(&file.url()).await;
    let held = other.lock("k").acquire().await.unwrap();
    let name = file.text("SELECT file FROM client");
    let lock = format!("locks.db-clients/{name}.lock");
    let lock = file.folder().join(lock);
    let aside = lock.with_extension("aside");
    fs::rename(&lock, &aside).unwrap();
    let unreadable = UnixListener::bind(&lock).unwrap();
    machine_starts_again(&file);
    let refused = LockClient::builder().url(file.url()).connect().await;
    assert!(refused.is_err());
    assert_eq!(file.number("SELECT count(*) FROM hold"), 1);
    drop(unreadable);
    fs::rename(&aside, &lock).unwrap();
    held.release().await.unwrap();
}

/// A worker in a container that hides the kernel's boot id, as those of LXC and systemd-nspawn do.
async fn masked_worker(file: &SqliteFile) -> ChildProcess {
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
    let mask = file.folder().join(id.trim());
    fs::write(&mask, &id).unwrap();
    let script = format!(
        "mount --bind {} /proc/sys/kernel/random/boot_id && exec {}",
        mask.display(),
        env!("CARGO_BIN_EXE_lock-worker"),
    );
    let mut worker = ChildProcess::start("unshare", &["-m", "sh", "-c", &script]);
    worker.send(&format!("connect {} patient", file.url()));
    worker.wait_for("connected").await;
    worker
}

fn may_mount() -> bool {
    let tried = Command::new("unshare").args(["-m", "true"]).output();
    let may = tried.is_ok_and(|tried| tried.status.success());
    if !may {
        left_out("this user may mount nothing");
    }
    may
}

#[tokio::test]
async fn clients_of_containers_that_hide_the_boot_id_exclude_each_other() {
    if !may_mount() {
        return;
    }
    let file = SqliteFile::new();
    let host = client(&file.url()).await;
    let (mut one, mut two) = (masked_worker(&file).await, masked_worker(&file).await);
    let same = client(&file.url()).await;
    let held = host.lock("k").acquire().await.unwrap();
    one.send("hold a k fair wait=60000");
    until_waiting(&same, "k", 1).await;
    two.send("hold b k fair wait=60000");
    until_waiting(&same, "k", 2).await;
    held.release().await.unwrap();
    one.wait_for("held a").await;
    one.kill();
    two.wait_for("held b").await;
    assert!(!is_free(&host, "k").await);
}

#[tokio::test]
async fn what_was_kept_outlives_a_container_that_hides_the_boot_id() {
    if !may_mount() {
        return;
    }
    let file = SqliteFile::new();
    let before = client(&file.url()).await;
    let kept = before.lock("k").hold_at_least(DAY / 2);
    kept.acquire().await.unwrap().release().await.unwrap();
    before.latch("l").set(1).await.unwrap();
    drop(before);
    until_alone(&file).await;
    for _ in 0..2 {
        let mut worker = masked_worker(&file).await;
        worker.send("hold a other");
        worker.wait_for("held a").await;
        worker.kill();
    }
    let after = client(&file.url()).await;
    assert!(!is_free(&after, "k").await);
    assert!(is_free(&after, "other").await);
    assert_eq!(after.latch("l").count().await.unwrap(), Some(1));
}

/// Of a container that hides the boot id, boot times tell: the kernel's, and that of tokens.
#[tokio::test]
async fn what_was_kept_ends_with_a_boot_of_which_only_its_clock_tells() {
    for earlier in [
        "boot = 'hidden masked', nanos = nanos + 3600000000000",
        "boot = 'hidden masked', floor = micros + 3600000000",
    ] {
        let file = SqliteFile::new();
        let before = client(&file.url()).await;
        let kept = before.lock("k").hold_at_least(DAY / 2);
        kept.acquire().await.unwrap().release().await.unwrap();
        drop(before);
        until_alone(&file).await;
        let before = format!("UPDATE machine SET {earlier}");
        file.connection().execute(&before, ()).unwrap();
        let floor = file.number("SELECT floor FROM machine");
        let after = client(&file.url()).await;
        assert!(is_free(&after, "k").await, "{earlier}");
        assert!(token(&after).await > floor as u64, "{earlier}");
    }
}

/// Without a socket, only the kernel's id could tell that it is the same.
#[tokio::test]
async fn clients_that_nothing_proves_to_be_of_one_kernel_are_told_of_the_hidden_boot_id() {
    let file = SqliteFile::new();
    let other = client(&file.url()).await;
    let held = other.lock("k").acquire().await.unwrap();
    let hidden = "UPDATE machine SET boot = 'hidden masked'";
    file.connection().execute(hidden, ()).unwrap();
    let same = client(&file.url()).await;
    drop(same);
    eventually("only the other is left", async || {
        file.number("SELECT count(*) FROM client") == 1
    })
    .await;
    file.connection().execute(hidden, ()).unwrap();
    for entry in fs::read_dir(file.folder().join("locks.db-clients")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "sock") {
            fs::remove_file(path).unwrap();
        }
    }
    let text = config(LockClient::builder().url(file.url()).connect().await);
    assert!(text.contains("hides the kernel's boot id"), "{text}");
    assert!(text.contains("unmount"), "{text}");
    assert!(held.is_held());
    held.release().await.unwrap();
}

/// So a later boot is told from this one, and nothing that is kept lasts long into it.
#[tokio::test]
async fn the_file_says_when_it_was_last_written_to_on_a_clock_that_stays() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let clock = "SELECT micros - nanos / 1000 FROM machine";
    let before = file.number(clock);
    let earlier = "UPDATE machine SET micros = micros - 20000007, nanos = nanos - 20000007000";
    file.connection().execute(earlier, ()).unwrap();
    let noted = file.number("SELECT nanos FROM machine");
    eventually("its time is noted", async || {
        client.lock("k").run(async {}).await.unwrap();
        file.number("SELECT nanos FROM machine") > noted + 20_000_000_000
    })
    .await;
    assert_eq!(file.number(clock), before);
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

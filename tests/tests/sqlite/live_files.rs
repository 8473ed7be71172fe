//! What happens to the three files of the database while processes use them: read by one of these
//! processes, deleted, replaced, cut off, or changed by SQLite's own tools.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_testkit::{ChildProcess, SqliteFile, eventually};
use rusqlite::config::DbConfig;

use crate::processes::turns_of;
use crate::{client, worker};

const DATABASE: &str = "";
const LOG: &str = "-wal";
const INDEX: &str = "-shm";

fn path(file: &SqliteFile, ending: &str) -> PathBuf {
    let mut path = file.path().as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn numbers(file: &SqliteFile) -> [u64; 3] {
    [DATABASE, LOG, INDEX].map(|ending| fs::metadata(path(file, ending)).unwrap().ino())
}

fn all_paths(file: &SqliteFile) -> String {
    let paths = [DATABASE, LOG, INDEX].map(|ending| path(file, ending).display().to_string());
    paths.join(" ")
}

/// True if another process gets the lock. It comes, asks once, and goes in good order.
async fn another_gets(url: &str, key: &str) -> bool {
    let other = client(url).await;
    let got = other.lock(key).try_acquire().await.unwrap().is_some();
    other.shutdown(Duration::from_secs(5)).await;
    got
}

async fn hold(worker: &mut ChildProcess, key: &str) {
    worker.send(&format!("hold {key} {key} lease=1000 renew"));
    worker.wait_for(&format!("held {key}")).await;
}

async fn is_told(worker: &mut ChildProcess, key: &str) {
    let failed = worker.wait_for(&format!("failed {key}")).await;
    assert!(failed.text.contains("Lost"), "{failed:?}");
}

/// Closing a file ends all locks that its process has there, SQLite's as well.
#[tokio::test]
async fn a_process_that_reads_its_own_files_keeps_its_locks() {
    let file = SqliteFile::new();
    let mut holder = worker(&file.url()).await;
    hold(&mut holder, "k").await;
    let before = numbers(&file);
    holder.send(&format!("read 0 {}", all_paths(&file)));
    holder.wait_for("has read").await;
    for _ in 0..3 {
        assert!(!another_gets(&file.url(), "k").await);
        assert_eq!(numbers(&file), before, "they are in use");
    }
    hold(&mut holder, "after").await;
    assert!(!another_gets(&file.url(), "after").await);
    holder.send("release k");
    holder.wait_for("done k").await;
    assert!(another_gets(&file.url(), "k").await);
}

/// They lose SQLite's locks in the midst of their transactions.
#[tokio::test]
async fn processes_that_read_their_files_all_the_time_never_hold_at_once() {
    let file = SqliteFile::new();
    let mut workers = Vec::new();
    for _ in 0..3 {
        let mut worker = worker(&file.url()).await;
        worker.send("spend plain 4 3000");
        worker.send("contend k 2 3000");
        worker.send(&format!("read 3000 {}", all_paths(&file)));
        workers.push(worker);
    }
    for worker in &mut workers {
        worker.wait_for("spent").await;
    }
    turns_of(&mut workers).await.assert_one_at_a_time();
    assert_eq!(file.text("PRAGMA integrity_check"), "ok");
}

/// SQLite's lock of who writes is ended again and again while it is looked for.
#[tokio::test]
async fn a_thread_that_reads_the_index_without_a_pause_costs_no_hold() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let guard = client.lock("k").acquire().await.unwrap();
    let (index, ends) = (path(&file, INDEX), Arc::new(AtomicBool::new(false)));
    let readers = [(); 2].map(|()| {
        let (index, ends) = (index.clone(), Arc::clone(&ends));
        std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                drop(File::open(&index).unwrap());
            }
        })
    });
    let other = file.folder().join("other");
    for _ in 0..100 {
        // Then the names are looked up.
        fs::write(&other, "").unwrap();
        fs::remove_file(&other).unwrap();
        client.lock("l").run(async {}).await.unwrap();
    }
    ends.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    guard.release().await.unwrap();
}

/// As a program that cleans up, and one that brings back a copy.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Deletes,
    Moves,
    Replaces,
    CutsOff,
}

fn damage(file: &SqliteFile, ending: &str, damage: Damage) {
    let (path, copy) = (path(file, ending), file.folder().join("copy"));
    match damage {
        Damage::Deletes => fs::remove_file(path).unwrap(),
        Damage::Moves => fs::rename(path, copy).unwrap(),
        Damage::Replaces => {
            fs::copy(&path, &copy).unwrap();
            fs::rename(copy, path).unwrap();
        }
        Damage::CutsOff => drop(File::create(path).unwrap()),
    }
}

/// All clients lose what they hold, if it is not there any more, and meet in the same files.
async fn lost_after(endings: &[&str], done: Damage) {
    println!("{done:?} {endings:?}");
    let file = SqliteFile::new();
    let (mut holder, mut other) = (worker(&file.url()).await, worker(&file.url()).await);
    hold(&mut holder, "k").await;
    for ending in endings {
        damage(&file, ending, done);
    }
    match done {
        // Nothing that is in the database is lost.
        Damage::CutsOff => {
            other.send("hold again k");
            holder.send("release k");
            other.wait_for("held again").await;
        }
        _ => is_told(&mut holder, "k").await,
    }
    let mut late = worker(&file.url()).await;
    for at in 0..3 {
        let key = format!("k{at}");
        for (at, one) in [&mut holder, &mut other, &mut late].into_iter().enumerate() {
            let wait = if at == 0 { 10_000 } else { 0 };
            one.send(&format!("hold {key} {key} lease=5000 renew wait={wait}"));
            match at {
                0 => _ = one.wait_for(&format!("held {key}")).await,
                _ => {
                    let failed = one.wait_for(&format!("failed {key}")).await;
                    assert!(failed.text.contains("Busy"), "{failed:?}");
                }
            }
        }
    }
    assert_eq!(file.text("PRAGMA integrity_check"), "ok");
}

#[tokio::test]
async fn whichever_file_is_deleted_its_clients_lose_their_holds_and_meet_again() {
    for endings in [
        &[DATABASE][..],
        &[LOG],
        &[INDEX],
        &[LOG, INDEX],
        &[DATABASE, LOG],
        &[DATABASE, LOG, INDEX],
    ] {
        lost_after(endings, Damage::Deletes).await;
    }
}

#[tokio::test]
async fn whichever_file_is_moved_or_replaced_its_clients_lose_their_holds_and_meet_again() {
    for ending in [DATABASE, LOG, INDEX] {
        lost_after(&[ending], Damage::Moves).await;
        lost_after(&[ending], Damage::Replaces).await;
    }
}

/// What was only in the log is gone for all.
#[tokio::test]
async fn whichever_file_is_cut_off_its_clients_go_on_with_what_is_left() {
    lost_after(&[LOG], Damage::CutsOff).await;
    lost_after(&[INDEX], Damage::CutsOff).await;
    // The next one that comes finds a new database, and SQLite deletes the log.
    let file = SqliteFile::new();
    let mut holder = worker(&file.url()).await;
    hold(&mut holder, "k").await;
    damage(&file, DATABASE, Damage::CutsOff);
    assert!(another_gets(&file.url(), "k").await);
    is_told(&mut holder, "k").await;
    hold(&mut holder, "again").await;
    assert!(!another_gets(&file.url(), "again").await);
}

/// As `.restore` writes an older state, in one transaction. The clients are not in it.
#[tokio::test]
async fn clients_that_are_not_in_the_database_any_more_lose_their_holds_and_enter_again() {
    let file = SqliteFile::new();
    let (mut holder, mut other) = (worker(&file.url()).await, worker(&file.url()).await);
    hold(&mut holder, "k").await;
    file.connection()
        .execute_batch("BEGIN; DELETE FROM hold; DELETE FROM client; COMMIT")
        .unwrap();
    // Before it notices anything else.
    holder.send("hold next next lease=5000 renew");
    holder.wait_for("held next").await;
    other.send("hold next next wait=0");
    let failed = other.wait_for("failed next").await;
    assert!(failed.text.contains("Busy"), "{failed:?}");
    is_told(&mut holder, "k").await;
    assert!(!another_gets(&file.url(), "next").await);
}

/// As after a log was cut off that had everything in it.
#[tokio::test]
async fn clients_of_a_database_without_tables_make_them_again() {
    let file = SqliteFile::new();
    let (mut holder, mut other) = (worker(&file.url()).await, worker(&file.url()).await);
    hold(&mut holder, "k").await;
    let tool = file.connection();
    let reset = DbConfig::SQLITE_DBCONFIG_RESET_DATABASE;
    tool.set_db_config(reset, true).unwrap();
    tool.execute_batch("VACUUM").unwrap();
    tool.set_db_config(reset, false).unwrap();
    drop(tool);
    is_told(&mut holder, "k").await;
    hold(&mut other, "k").await;
    assert!(!another_gets(&file.url(), "k").await);
}

/// A backup is a reader, and the others wait for the lock or are refused it.
#[tokio::test]
async fn what_other_tools_do_by_sqlite_itself_costs_no_hold() {
    let file = SqliteFile::new();
    let mut workers = Vec::new();
    for at in 0..3 {
        let mut worker = worker(&file.url()).await;
        hold(&mut worker, &format!("own{at}")).await;
        worker.send("contend k 2 3000");
        workers.push(worker);
    }
    let before = numbers(&file);
    let until = std::time::Instant::now() + Duration::from_secs(3);
    let mut copies = 0;
    while std::time::Instant::now() < until {
        let tool = file.connection();
        tool.execute_batch("VACUUM").unwrap();
        let into = format!("VACUUM INTO '{}/copy{copies}'", file.folder().display());
        tool.execute_batch(&into).unwrap();
        copies += 1;
        let mode = tool
            .execute_batch("PRAGMA journal_mode=DELETE")
            .unwrap_err();
        assert!(mode.to_string().contains("locked"), "{mode}");
        let _ = tool.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        drop(tool);
        assert_eq!(numbers(&file), before, "they are in use");
    }
    turns_of(&mut workers).await.assert_one_at_a_time();
    for (at, worker) in workers.iter_mut().enumerate() {
        worker.send(&format!("release own{at}"));
        worker.wait_for(&format!("done own{at}")).await;
    }
    assert_eq!(file.text("PRAGMA integrity_check"), "ok");
}

/// SQLite writes the log's name from the file's own, whatever link leads to it.
#[tokio::test]
async fn by_a_link_and_by_its_own_name_it_is_the_same_database() {
    let file = SqliteFile::new();
    let folder = file.folder().join("other");
    fs::create_dir(&folder).unwrap();
    let link = folder.join("link.db");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    let url = format!("sqlite://{}", link.display());
    let mut holder = worker(&url).await;
    holder.send("hold k k fenced");
    holder.wait_for("held k").await;
    assert!(!another_gets(&file.url(), "k").await);
    assert!(!folder.join("link.db-clients").exists());
    holder.kill();
    eventually("it is over at once", async || {
        another_gets(&file.url(), "k").await
    })
    .await;
}

/// As into a container, where it would have a log of its own. With its folder, it is one database.
#[tokio::test]
async fn a_file_that_is_mounted_without_its_folder_is_refused() {
    let file = SqliteFile::new();
    let mut holder = worker(&file.url()).await;
    holder.send("hold k k lease=60000");
    holder.wait_for("held k").await;
    let place = tempfile::tempdir().unwrap();
    let inside = place.path().join("locks.db");
    fs::write(&inside, "").unwrap();
    let url = format!("sqlite://{}", inside.display());
    let Some(mount) = Mount::of(file.path(), &inside) else {
        return println!("this user may mount nothing");
    };
    let refused = lock_runtime::LockClient::builder().url(&url);
    let text = crate::config(refused.connect().await);
    assert!(text.contains("mount the folder"), "{text}");
    drop(mount);
    let _mount = Mount::of(file.folder(), place.path()).unwrap();
    assert!(!another_gets(&url, "k").await);
    holder.kill();
    eventually("it is over at once", async || another_gets(&url, "k").await).await;
}

/// A file or a folder that is mounted at another place as well, as long as this lives.
struct Mount(PathBuf);

impl Mount {
    /// `None` for a user who may not.
    fn of(from: &Path, to: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mounted = mount.arg("--bind").args([from, to]).status();
        let is_mounted = mounted.is_ok_and(|status| status.success());
        is_mounted.then(|| Self(to.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// With two names, it would have two logs.
#[tokio::test]
async fn a_file_with_two_names_is_refused() {
    let file = SqliteFile::new();
    drop(client(&file.url()).await);
    fs::hard_link(file.path(), file.folder().join("second.db")).unwrap();
    let refused = lock_runtime::LockClient::builder().url(file.url());
    let text = crate::config(refused.connect().await);
    assert!(text.contains("more than one name"), "{text}");
}

//! SQLite, as somebody would write it who needs a lock now: a row, by an upsert that is refused
//! while another's lease lasts, and a delete.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::Place;
use crate::worker::{Counts, Order, Running, Work};

/// Who polls waits so long between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) const SCHEME: &str = "sqlite://";

const LEASE: i64 = 30_000;

/// A database on the disk of the temporary folder.
#[derive(Debug)]
pub(crate) struct Database(TempDir);

impl Database {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
}

impl Place for Database {
    fn url(&self) -> String {
        format!("{SCHEME}{}", self.0.path().join("locks.db").display())
    }
}

fn open(url: &str) -> Connection {
    let path = url.strip_prefix(SCHEME).expect("a URL of SQLite");
    let file = Path::new(path).with_extension("by-hand.db");
    let rows = Connection::open(file).expect("the database");
    rows.busy_timeout(Duration::from_secs(30))
        .expect("a time limit");
    rows.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .expect("a log");
    // As this library does it.
    rows.pragma_update(None, "synchronous", "NORMAL")
        .expect("a setting");
    rows.execute_batch(
        "CREATE TABLE IF NOT EXISTS lock (
            name TEXT PRIMARY KEY, owner TEXT NOT NULL, ends INTEGER NOT NULL
         ) WITHOUT ROWID",
    )
    .expect("the table");
    rows
}

fn take(rows: &Connection, key: &str, owner: &str) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    let now = i64::try_from(now.as_millis()).expect("a year before 292 million");
    let mut insert = rows
        .prepare_cached(
            "INSERT INTO lock (name, owner, ends) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, ends = excluded.ends
             WHERE ends <= ?4",
        )
        .expect("a statement");
    let taken = insert.execute(params![key, owner, now + LEASE, now]);
    taken.expect("the row") == 1
}

fn give_back(rows: &Connection, key: &str, owner: &str) {
    let mut delete = rows
        .prepare_cached("DELETE FROM lock WHERE name = ?1 AND owner = ?2")
        .expect("a statement");
    delete.execute([key, owner]).expect("the row");
}

/// `loop`: one thread takes and gives back one key after the other, and nobody else is there.
/// `poll`: each task is a thread with a connection of its own, and tries again after a pause.
pub(crate) fn by_hand(library: &str, order: &Order, counts: &Arc<Counts>) -> Work {
    let polls = library == "poll";
    let threads = if polls { order.tasks } else { 1 };
    let rows: Vec<Connection> = (0..threads).map(|_| open(&order.place)).collect();
    let (order, counts) = (order.clone(), Arc::clone(counts));
    Work::new(move || {
        let run = |(at, rows): (usize, Connection)| {
            let (order, counts) = (order.clone(), Arc::clone(&counts));
            thread::spawn(move || {
                let owner = format!("{}-{at}", std::process::id());
                let keys: Vec<String> = (0..order.tasks).map(|task| order.key(task)).collect();
                let mine = if polls { at..at + 1 } else { 0..order.tasks };
                while counts.goes_on() {
                    for task in mine.clone() {
                        while !take(&rows, &keys[task], &owner) {
                            if !counts.goes_on() {
                                return;
                            }
                            thread::sleep(PAUSE);
                        }
                        give_back(&rows, &keys[task], &owner);
                        counts.count(task);
                    }
                }
            })
        };
        let threads: Vec<_> = rows.into_iter().enumerate().map(run).collect();
        Running::new(move || {
            for one in threads {
                one.join().expect("it ends");
            }
        })
    })
}

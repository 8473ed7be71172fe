//! Several processes, some of which die or stand still.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{ChildProcess, SqliteFile, eventually};

use crate::{AT_ONCE, client, is_free, take, until_waiting, worker};

/// The numbers of an event such as `turn 17 1234 1250`.
fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Each turn of a task: from, to, process, task.
pub(crate) struct Turns(Vec<(u64, u64, usize, u64)>);

/// All turns of workers that contend.
pub(crate) async fn turns_of(workers: &mut [ChildProcess]) -> Turns {
    let mut turns = Vec::new();
    for (process, worker) in workers.iter_mut().enumerate() {
        worker.wait_for("contended").await;
        for event in worker.take_events() {
            if let Some(turn) = event.text.strip_prefix("turn ") {
                let [task, from, to] = numbers(turn)[..] else {
                    panic!("{turn}")
                };
                turns.push((from, to, process, task));
            }
        }
    }
    turns.sort_unstable();
    Turns(turns)
}

impl Turns {
    pub(crate) fn assert_one_at_a_time(&self) {
        assert!(!self.0.is_empty());
        for pair in self.0.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "two holders: {pair:?}");
        }
    }
}

async fn contended(processes: usize, tasks: usize, options: &str) {
    let file = SqliteFile::new();
    let mut workers = Vec::new();
    for _ in 0..processes {
        workers.push(worker(&file.url()).await);
    }
    for worker in &mut workers {
        worker.send(&format!("contend k {tasks} 4000 {options}"));
    }
    let turns = turns_of(&mut workers).await;
    turns.assert_one_at_a_time();
    let turns = turns.0;
    let mut all: Vec<_> = turns
        .iter()
        .map(|(_, _, process, task)| (process, task))
        .collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), processes * tasks, "every task gets its turn");
    println!("{} turns {options}", turns.len());
}

/// A worker ends with an error if any of its requests fails.
#[tokio::test]
async fn twenty_processes_never_hold_at_once_and_get_no_errors() {
    contended(20, 2, "").await;
    contended(20, 2, "stays=2").await;
}

#[tokio::test]
async fn fair_tasks_of_many_processes_never_hold_at_once_and_get_no_errors() {
    contended(6, 4, "fair").await;
}

#[tokio::test]
async fn fenced_tasks_of_many_processes_never_hold_at_once_and_get_no_errors() {
    contended(4, 4, "fenced").await;
}

/// The worker's leases are 30 s long.
#[tokio::test]
async fn all_locks_of_a_killed_process_are_over_at_once() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let mut holder = worker(&file.url()).await;
    for hold in [
        "a k renew",
        "b r read",
        "c w write",
        "d s permits=2/2",
        "e m,n",
    ] {
        holder.send(&format!("hold {hold}"));
        holder.wait_for(&format!("held {}", &hold[..1])).await;
    }
    let waits = tokio::spawn({
        let client = client.clone();
        async move { take(&client, "k").await }
    });
    until_waiting(&client, "k", 1).await;
    holder.kill();
    let killed = std::time::Instant::now();
    waits.await.unwrap();
    // Before the waiting request asks again, a second after it has asked.
    assert!(killed.elapsed() < AT_ONCE / 10, "{:?}", killed.elapsed());
    for key in ["r", "w", "s", "m", "n"] {
        assert!(is_free(&client, key).await, "{key}");
        let took = take(&client, key).await;
        assert!(took < AT_ONCE, "{key}: {took:?}");
    }
    client.rw_lock("r").write().run(async {}).await.unwrap();
    assert_eq!(file.number("SELECT count(*) FROM client"), 1);
    drop(client);
    eventually("nothing is left", async || {
        let files = std::fs::read_dir(file.folder().join("locks.db-clients"));
        file.leftovers() == 0 && files.unwrap().count() == 0
    })
    .await;
}

#[tokio::test]
async fn a_killed_first_waiter_is_dropped_at_the_release() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let held = client.lock("k").acquire().await.unwrap();
    let (mut first, mut second) = (worker(&file.url()).await, worker(&file.url()).await);
    for (places, (id, worker)) in [("a", &mut first), ("b", &mut second)]
        .into_iter()
        .enumerate()
    {
        worker.send(&format!("hold {id} k fair wait=60000"));
        until_waiting(&client, "k", places + 1).await;
    }
    first.kill();
    let released = std::time::Instant::now();
    held.release().await.unwrap();
    let event = second.wait_for("held b").await;
    let took = event.at.saturating_duration_since(released);
    // A hand-over to a process that is gone would cost its first lease, of 2 s.
    assert!(took < Duration::from_millis(900), "{took:?}");
}

/// What a forked child says. Little is safe in a child of a process with several threads (POSIX,
/// `fork`): it may stand still at a lock that another thread had at that moment. Then another child
/// is asked.
async fn forked_child_of(parent: &mut ChildProcess, url: &str) -> String {
    for _ in 0..5 {
        parent.send(&format!("fork 8000 {url}"));
        let until = std::time::Instant::now() + Duration::from_secs(5);
        while std::time::Instant::now() < until {
            let events = parent.take_events().into_iter();
            let mut of_child = events.filter(|event| event.text.starts_with("child"));
            if let Some(said) = of_child.next() {
                return said.text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    panic!("no child says anything");
}

/// The kernel keeps the lock on a parent's file as long as a forked child has it.
#[tokio::test]
async fn a_forked_child_is_refused_and_keeps_nothing_of_its_killed_parent() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let mut parent = worker(&file.url()).await;
    parent.send("hold a k");
    parent.wait_for("held a").await;
    let child = forked_child_of(&mut parent, &file.url()).await;
    assert!(child.contains("this process was forked"), "{child}");
    parent.kill();
    let took = take(&client, "k").await;
    assert!(took < AT_ONCE, "{took:?}");
}

#[tokio::test]
async fn the_copy_of_a_client_in_a_child_process_is_refused_and_takes_nothing() {
    let file = SqliteFile::new();
    let program = env!("CARGO_BIN_EXE_forking-worker");
    let worker = ChildProcess::start(program, &[&file.url()]);
    let (status, events) = worker.finish().await;
    assert!(status.success(), "{events:?}");
    let said: Vec<_> = events.iter().map(|event| event.text.as_str()).collect();
    for expected in [
        "child try refused",
        "child release refused",
        "child done",
        "parent kept held",
        "parent released held",
        "parent dropped held",
        "parent next held",
    ] {
        assert!(said.contains(&expected), "{expected}: {said:#?}");
    }
}

/// Stops a process in the midst of a transaction, or between two of them.
async fn pause(process: &mut ChildProcess, file: &SqliteFile, writes: bool) {
    // Also a client that is asked for nothing has a few of them at its start.
    eventually("it stands still there", async || {
        process.pause();
        let is_there = file.is_written_to() == writes;
        if !is_there {
            process.resume();
        }
        is_there
    })
    .await;
}

#[tokio::test]
async fn a_stopped_process_keeps_its_lock_for_its_lease_and_no_longer() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let mut holder = worker(&file.url()).await;
    holder.send("hold a k lease=1500 ticks");
    holder.wait_for("held a").await;
    pause(&mut holder, &file, false).await;
    let stopped = std::time::Instant::now();
    let left = client.inspect("k").await.unwrap().remaining.unwrap();
    take(&client, "k").await;
    assert!(
        stopped.elapsed() >= left,
        "{:?} {left:?}",
        stopped.elapsed()
    );
    assert!(stopped.elapsed() < AT_ONCE);
    holder.resume();
    let failed = holder.wait_for("failed a").await;
    assert!(failed.text.contains("Lost"), "{failed:?}");
}

/// Nobody else can write until it goes on: with SQLite, one at a time does.
#[tokio::test]
async fn who_waits_for_a_process_that_stands_still_as_it_writes_is_told_to_look_for_it() {
    let file = SqliteFile::new();
    let builder = LockClient::builder().url(file.url());
    let builder = builder.command_timeout(Duration::from_millis(300));
    let client = builder.connect().await.unwrap();
    let mut writer = worker(&file.url()).await;
    writer.send("contend k 1 60000");
    pause(&mut writer, &file, true).await;
    for failed in [
        client.lock("other").try_acquire().await.map(drop),
        client.inspect("other").await.map(drop),
    ] {
        let Err(error @ LockError::Unavailable { .. }) = failed else {
            panic!("{failed:?}");
        };
        let said = error.to_string();
        assert!(said.contains("other processes write to it"), "{said}");
        let advice = "look for a process that has it open and stands still";
        assert!(said.contains(advice), "{said}");
    }
    writer.resume();
    let took = take(&client, "other").await;
    assert!(took < AT_ONCE, "{took:?}");
}

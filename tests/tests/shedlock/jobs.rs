//! What holds on each store.

use std::time::Duration;

use lock_runtime::{HeldBy, LockClient, LockError};
use lock_testkit::{ChildProcess, Event, monotonic_nanos};

use crate::Shared;

/// How late a lock may come free, on a machine that is busy.
const LATE: Duration = Duration::from_secs(3);
/// How much earlier than another process a clock may be read.
const READING: Duration = Duration::from_millis(20);

/// The time in the last word of an event.
fn time_of(event: &Event) -> u64 {
    event
        .text
        .trim()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

fn between(from: u64, to: u64) -> Duration {
    Duration::from_nanos(to.saturating_sub(from))
}

/// A job in Java, which must begin. When that was.
async fn begin(java: &mut ChildProcess, job: &str) -> u64 {
    java.send(&format!("job {job}"));
    time_of(&java.wait_for("began").await)
}

async fn end(java: &mut ChildProcess) {
    java.send("end");
    java.wait_for("ended").await;
}

async fn is_skipped(java: &mut ChildProcess, job: &str) {
    java.send(&format!("job {job}"));
    java.wait_for("skipped").await;
}

/// A job in Java, asked for until it begins. When that was.
async fn begin_at_last(java: &mut ChildProcess, job: &str) -> u64 {
    let until = monotonic_nanos() + 30_000_000_000;
    loop {
        java.send(&format!("job {job}"));
        let said = java.wait_for("").await;
        if said.text.starts_with("began") {
            return time_of(&said);
        }
        assert!(monotonic_nanos() < until, "{}", said.text);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A lock of Java's has come free now, not before its time and not much later. Java says when its
/// job began, and took the lock before, after it was asked: how long before, nobody knows.
fn kept_for(time: Duration, asked: u64, began: u64) {
    let now = monotonic_nanos();
    let (most, least) = (between(asked, now), between(began, now));
    assert!(
        most > time - READING && least < time + LATE,
        "{most:?} {least:?}"
    );
    assert!(between(asked, began) < LATE, "Java was asked long before");
}

async fn is_busy(client: &LockClient, key: &str) -> bool {
    client.lock(key).try_acquire().await.unwrap().is_none()
}

pub(crate) async fn each_skips_what_the_other_has(shared: &Shared, holder_in_java: &str) {
    let Some((mut java, client)) = shared.both().await else {
        return;
    };
    begin(&mut java, "report 60000 0").await;
    assert!(is_busy(&client, "report").await);
    let error = client.lock("report").wait(Duration::from_millis(50));
    let error = error.acquire().await.unwrap_err();
    let LockError::Busy { held_by, .. } = &error else {
        unreachable!("{error}")
    };
    let HeldBy::ForeignClient { name, .. } = held_by else {
        unreachable!("{held_by:?}")
    };
    assert!(name.starts_with(holder_in_java), "{name}");
    let found = client.inspect("report").await.unwrap();
    assert!(found.remaining.unwrap() > Duration::from_secs(40));
    // Another job is free.
    assert!(!is_busy(&client, "invoices").await);
    end(&mut java).await;

    let ours = client.lock("report").try_acquire().await.unwrap().unwrap();
    is_skipped(&mut java, "report 60000 0").await;
    ours.release().await.unwrap();
    begin(&mut java, "report 60000 0").await;
    end(&mut java).await;
    let found = client.inspect("report").await.unwrap();
    assert_eq!(found.holder, None);
}

pub(crate) async fn what_either_keeps_at_least_is_kept_from_the_other(shared: &Shared) {
    let Some((mut java, client)) = shared.both().await else {
        return;
    };
    let at_least = Duration::from_secs(4);
    let asked = monotonic_nanos();
    let began = begin(&mut java, "report 60000 4000").await;
    end(&mut java).await;
    assert!(is_busy(&client, "report").await);
    let ours = client.lock("report").acquire().await.unwrap();
    kept_for(at_least, asked, began);
    ours.release().await.unwrap();

    let asked = monotonic_nanos();
    let ours = client.lock("report").hold_at_least(at_least);
    ours.acquire().await.unwrap().release().await.unwrap();
    is_skipped(&mut java, "report 60000 0").await;
    // Nobody can give it back early.
    assert!(is_busy(&client, "report").await);
    let began = begin_at_last(&mut java, "report 60000 0").await;
    let passed = between(asked, began);
    assert!(
        passed > at_least - READING && passed < at_least + LATE,
        "{passed:?}"
    );
    end(&mut java).await;
}

pub(crate) async fn a_death_frees_it_at_the_end_of_its_lease(shared: &Shared) {
    let Some((mut java, client)) = shared.both().await else {
        return;
    };
    let lease = Duration::from_secs(4);
    let asked = monotonic_nanos();
    let began = begin(&mut java, "report 4000 0").await;
    java.kill();
    let ours = client.lock("report").acquire().await.unwrap();
    kept_for(lease, asked, began);
    ours.release().await.unwrap();

    let Some((mut java, _)) = shared.both().await else {
        return;
    };
    let mut dying = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    dying.send(&format!("connect {} patient", shared.url));
    dying.wait_for("connected").await;
    let asked = monotonic_nanos();
    dying.send("hold 1 report lease=4000");
    dying.wait_for("held").await;
    dying.kill();
    is_skipped(&mut java, "report 60000 0").await;
    let began = begin_at_last(&mut java, "report 60000 0").await;
    let passed = between(asked, began);
    assert!(
        passed > lease - READING && passed < lease + LATE,
        "{passed:?}"
    );
    end(&mut java).await;
}

pub(crate) async fn either_can_extend_its_own_and_only_that(shared: &Shared) {
    let Some((mut java, client)) = shared.both().await else {
        return;
    };
    let began = begin(&mut java, "report 4000 0").await;
    java.send("extend 60000 0");
    java.wait_for("extended").await;
    while between(began, monotonic_nanos()) < Duration::from_millis(4200) {
        assert!(is_busy(&client, "report").await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let found = client.inspect("report").await.unwrap();
    assert!(found.remaining.unwrap() > Duration::from_secs(40));
    // What is not Java's any more it can't extend, nor end.
    assert!(client.force_release("report").await.unwrap());
    let asked = monotonic_nanos();
    let ours = client.lock("report").lease(Duration::from_secs(4));
    let ours = ours.acquire().await.unwrap();
    java.send("extend 60000 0");
    java.wait_for("refused").await;
    end(&mut java).await;

    ours.extend(Duration::from_secs(60)).await.unwrap();
    while between(asked, monotonic_nanos()) < Duration::from_millis(4200) {
        is_skipped(&mut java, "report 60000 0").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(ours.is_held());
    ours.release().await.unwrap();
    begin(&mut java, "report 60000 0").await;
    end(&mut java).await;
}

/// For `SHEDLOCK_SECONDS`, or some.
pub(crate) async fn both_take_turns_and_never_at_once(shared: &Shared) {
    let Some((mut java, _)) = shared.both().await else {
        return;
    };
    let seconds = std::env::var("SHEDLOCK_SECONDS").ok();
    let seconds: u64 = seconds.map_or(5, |seconds| seconds.parse().unwrap());
    let millis = seconds * 1000;
    let mut ours = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    ours.send(&format!("connect {} patient", shared.url));
    ours.wait_for("connected").await;
    java.send(&format!("contend report 60000 {millis}"));
    ours.send(&format!("contend report 2 {millis} stays=2"));
    let mut turns = Vec::new();
    for (worker, is_java) in [(&mut java, true), (&mut ours, false)] {
        worker
            .wait_within(Duration::from_secs(120), "contended")
            .await;
        for event in worker.take_events() {
            if let Some(turn) = event.text.strip_prefix("turn ") {
                let numbers = turn.split(' ').map(|number| number.parse().unwrap());
                let numbers: Vec<u64> = numbers.collect();
                let [.., from, to] = numbers[..] else {
                    unreachable!("{turn}")
                };
                turns.push((from, to, is_java));
            }
        }
    }
    turns.sort_unstable();
    for pair in turns.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two holders: {pair:?}");
    }
    let theirs = turns.iter().filter(|(.., is_java)| *is_java).count();
    let ours = turns.len() - theirs;
    println!("{theirs} turns of ShedLock, {ours} of ours in {seconds} s");
    assert!(theirs > 5 && ours > 5, "{theirs} and {ours}");
}

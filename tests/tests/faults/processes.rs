//! Several processes, some of which die or stand still.

use std::time::{Duration, Instant};

use lock_testkit::{ChildProcess, RedisServer};

use crate::{SLACK, client, until_waiting, worker};

/// The numbers of an event such as `held a 17 1234`.
fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

async fn contended(fair: &str) {
    let server = RedisServer::start().await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(worker(&server.url()).await);
    }
    for worker in &mut workers {
        worker.send(&format!("contend k 64 10000 {fair}"));
    }
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
    for pair in turns.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two holders: {pair:?}");
    }
    let mut tasks: Vec<_> = turns
        .iter()
        .map(|(_, _, process, task)| (process, task))
        .collect();
    tasks.sort_unstable();
    tasks.dedup();
    assert_eq!(tasks.len(), 256, "every task gets its turn");
    println!("{} turns {fair}", turns.len());
}

#[tokio::test]
async fn sixty_four_tasks_in_each_of_four_processes_never_hold_at_once_and_all_get_their_turn() {
    contended("").await;
}

#[tokio::test]
async fn fair_tasks_of_four_processes_never_hold_at_once_and_all_get_their_turn() {
    contended("fair").await;
}

/// Four processes ask for ten seconds. Each pass lies between two times of the machine's clock.
async fn limited(rate: u32, burst: u32, wait: u32) {
    let server = RedisServer::start().await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(worker(&server.url()).await);
    }
    for worker in &mut workers {
        worker.send(&format!("limit k {rate} {burst} 8 10000 {wait}"));
    }
    let mut passes = Vec::new();
    for worker in &mut workers {
        worker.wait_for("limited").await;
        let before = passes.len();
        for event in worker.take_events() {
            if let Some(pass) = event.text.strip_prefix("passed ") {
                let [from, to] = numbers(pass)[..] else {
                    panic!("{pass}")
                };
                passes.push((from, to));
            }
        }
        assert!(passes.len() > before, "every process passes");
    }
    let allowed =
        |nanos: u64| u128::from(nanos) * u128::from(rate) / 1_000_000_000 + u128::from(burst);
    let mut ends: Vec<u64> = passes.iter().map(|(_, to)| *to).collect();
    ends.sort_unstable();
    passes.sort_unstable();
    // A request that began at `first` or later and had passed by `last` passed between the two.
    for (at, (first, _)) in passes.iter().enumerate() {
        let mut inside: Vec<u64> = passes[at..].iter().map(|(_, to)| *to).collect();
        inside.sort_unstable();
        for (count, last) in inside.iter().enumerate() {
            let count = count as u128 + 1;
            let window = last - first;
            assert!(
                count <= allowed(window),
                "{count} in {window} ns, allowed are {}",
                allowed(window)
            );
        }
    }
    let whole = ends[ends.len() - 1] - passes[0].0;
    println!("{} passed of {}", passes.len(), allowed(whole));
    // The limiter does not block everything: most of what is allowed passes, also on a slow
    // machine.
    assert!(passes.len() as u128 * 2 > allowed(whole));
}

#[tokio::test]
async fn four_processes_together_never_exceed_a_rate() {
    limited(200, 20, 0).await;
}

#[tokio::test]
async fn four_processes_that_wait_for_their_turns_never_exceed_a_rate() {
    limited(100, 1, 1000).await;
}

#[tokio::test]
async fn arrival_order_is_kept_across_processes_under_fair() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let held = observer.lock("k").acquire().await.unwrap();
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(worker(&server.url()).await);
    }
    for number in 0..24 {
        workers[number % 4].send(&format!("hold w{number} k fair wait=60000"));
        until_waiting(&observer, "k", number + 1).await;
    }
    held.release().await.unwrap();
    let mut last = 0;
    for number in 0..24 {
        let event = workers[number % 4]
            .wait_for(&format!("held w{number} "))
            .await;
        let granted = numbers(&event.text).pop().unwrap();
        assert!(granted > last, "{number} was served before its predecessor");
        last = granted;
        workers[number % 4].send(&format!("release w{number}"));
    }
}

#[tokio::test]
async fn a_holder_killed_costs_no_more_than_its_lease() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let mut holder = worker(&server.url()).await;
    holder.send("hold a k lease=2000 renew");
    holder.wait_for("held a").await;
    let waiting = tokio::spawn(observer.lock("k").acquire());
    until_waiting(&observer, "k", 1).await;
    holder.kill();
    let killed = Instant::now();
    let remaining = observer.inspect("k").await.unwrap().remaining.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(
        killed.elapsed() <= remaining + Duration::from_secs(1) + SLACK,
        "{:?} of {remaining:?}",
        killed.elapsed()
    );
    assert!(next.is_held());
}

#[tokio::test]
async fn a_waiter_killed_at_the_head_of_the_queue_is_dropped_at_the_release() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    for fair in ["", "fair"] {
        let held = observer.lock("k").acquire().await.unwrap();
        let (mut head, mut next) = (worker(&server.url()).await, worker(&server.url()).await);
        head.send(&format!("hold a k {fair}"));
        until_waiting(&observer, "k", 1).await;
        next.send(&format!("hold b k {fair}"));
        until_waiting(&observer, "k", 2).await;
        head.kill();
        // The server notices the end of the connection before it reads the release, which is sent
        // later.
        lock_testkit::eventually("the server noticed", async || {
            server.grant_channels().await.len() == 1
        })
        .await;
        let released = Instant::now();
        held.release().await.unwrap();
        let granted = next.wait_for("held b").await.at;
        assert!(
            granted - released < Duration::from_millis(700),
            "{:?}: not by a poll",
            granted - released
        );
        next.send("release b");
        next.wait_for("done b").await;
    }
}

#[tokio::test]
async fn a_waiter_stopped_at_the_head_of_the_queue_costs_its_short_first_lease() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let held = observer.lock("k").acquire().await.unwrap();
    let (mut head, mut next) = (worker(&server.url()).await, worker(&server.url()).await);
    head.send("hold a k fenced");
    until_waiting(&observer, "k", 1).await;
    next.send("hold b k fenced");
    until_waiting(&observer, "k", 2).await;
    head.pause();
    let released = Instant::now();
    held.release().await.unwrap();
    let granted = next.wait_for("held b").await;
    assert!(
        granted.at - released < Duration::from_secs(3) + SLACK,
        "{:?}",
        granted.at - released
    );
    // It wakes up to the message of a grant that is long gone, and must wait like all others.
    head.resume();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(
        head.take_events()
            .iter()
            .all(|event| !event.text.starts_with("held")),
        "two holders"
    );
    next.send("release b");
    let done = numbers(&next.wait_for("done b").await.text)[0];
    let again = numbers(&head.wait_for("held a").await.text);
    assert!(
        again[0] > numbers(&granted.text)[0],
        "its token is higher than that of the hold in between"
    );
    assert!(again[1] > 0 && done > 0);
}

#[tokio::test]
async fn all_places_of_a_process_that_stands_still_cost_one_short_first_lease() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let held = observer.lock("k").acquire().await.unwrap();
    let mut stopped = worker(&server.url()).await;
    for place in 0..8 {
        stopped.send(&format!("hold w{place} k fair wait=60000"));
        until_waiting(&observer, "k", place + 1).await;
    }
    stopped.pause();
    let last = tokio::spawn(
        observer
            .lock("k")
            .fair()
            .wait(Duration::from_secs(60))
            .acquire(),
    );
    until_waiting(&observer, "k", 9).await;
    let released = Instant::now();
    held.release().await.unwrap();
    let last = last.await.unwrap().unwrap();
    let took = released.elapsed();
    // 2 s, and up to 1 s until a waiter looks.
    assert!(took < Duration::from_secs(3) + SLACK, "{took:?}");
    // The process goes on at its old places.
    stopped.resume();
    until_waiting(&observer, "k", 8).await;
    let another = observer.lock("k").fair().wait(Duration::from_secs(60));
    let another = tokio::spawn(another.acquire());
    until_waiting(&observer, "k", 9).await;
    last.release().await.unwrap();
    // The first was granted the lock meanwhile, and lost its place.
    for place in [1, 2, 3, 4, 5, 6, 7, 0] {
        stopped.wait_for(&format!("held w{place}")).await;
        assert!(!another.is_finished());
        stopped.send(&format!("release w{place}"));
    }
    assert!(another.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_writer_that_stands_still_stops_readers_for_two_seconds_and_not_after_its_wait() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    for (key, wait, at_most) in [("long", 60_000, 2000), ("short", 300, 300)] {
        let _reader = observer.rw_lock(key).read().acquire().await.unwrap();
        let mut writer = worker(&server.url()).await;
        let waits = format!("hold w {key} write wait={wait}");
        writer.send(&waits);
        lock_testkit::eventually("it is seen to wait", async || {
            // On a busy machine, a short wait may be over before it is seen.
            let events = writer.take_events();
            if events.iter().any(|event| event.text.starts_with("failed")) {
                writer.send(&waits);
            }
            observer.inspect(key).await.unwrap().waiting == 1
        })
        .await;
        writer.pause();
        let paused = Instant::now();
        let another = observer.rw_lock(key).read().wait(Duration::from_secs(20));
        assert!(another.acquire().await.unwrap().is_held());
        // The reader looks each second.
        let at_most = Duration::from_millis(at_most) + Duration::from_secs(1) + SLACK;
        assert!(
            paused.elapsed() < at_most,
            "{:?} of {at_most:?}",
            paused.elapsed()
        );
        drop(writer);
    }
}

/// Stops a holder for longer than its lease.
async fn stopped_holder(options: &str) -> (ChildProcess, ChildProcess) {
    let server = RedisServer::start().await;
    let (mut first, mut second) = (worker(&server.url()).await, worker(&server.url()).await);
    first.send(&format!("hold a k fenced ticks {options}"));
    let held = numbers(&first.wait_for("held a").await.text);
    first.wait_for("tick a").await;
    first.pause();
    second.send("hold b k fenced wait=20000");
    let granted = numbers(&second.wait_for("held b").await.text);
    assert!(granted[0] > held[0], "the successor's token is higher");
    first.resume();
    let failed = first.wait_for("failed a").await;
    assert!(failed.text.contains("Lost"), "{}", failed.text);
    for event in first.take_events() {
        if let Some(tick) = event.text.strip_prefix("tick a ") {
            assert!(
                numbers(tick)[0] < granted[1],
                "it worked on under a lock that it had lost"
            );
        }
    }
    second.send("release b");
    second.wait_for("done b").await;
    (first, second)
}

#[tokio::test]
async fn a_holder_stopped_beyond_its_lease_does_nothing_more_under_it() {
    stopped_holder("lease=500").await;
    stopped_holder("lease=500 renew").await;
}

#[tokio::test]
async fn a_waiter_stopped_beyond_its_hand_over_does_not_take_the_old_grant_for_a_new_one() {
    const KEYS: usize = 50;
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let mut held = Vec::new();
    for key in 0..KEYS {
        held.push(observer.lock(format!("k{key}")).acquire().await.unwrap());
    }
    let (mut stopped, mut next) = (worker(&server.url()).await, worker(&server.url()).await);
    // What the one is granted while it stands still ends soon. The other keeps its locks.
    let workers = [(&mut stopped, 300), (&mut next, 10_000)];
    for (places, (worker, lease)) in workers.into_iter().enumerate() {
        for key in 0..KEYS {
            worker.send(&format!("hold {key} k{key} lease={lease} renew wait=60000"));
        }
        for key in 0..KEYS {
            until_waiting(&observer, &format!("k{key}"), places + 1).await;
        }
    }
    stopped.pause();
    for guard in held {
        guard.release().await.unwrap();
    }
    for key in 0..KEYS {
        next.wait_for(&format!("held {key} ")).await;
    }
    // Its timers are due, and the messages of grants that are long gone have come. Any of them may
    // be seen first.
    stopped.resume();
    for key in 0..KEYS {
        until_waiting(&observer, &format!("k{key}"), 1).await;
    }
    stopped.send("ping");
    stopped.wait_for("pong").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let events = stopped.take_events();
    let held: Vec<_> = events
        .iter()
        .filter(|event| event.text.starts_with("held"))
        .collect();
    assert!(held.is_empty(), "two holders of {} keys", held.len());
    for key in 0..KEYS {
        next.send(&format!("release {key}"));
        stopped.wait_for(&format!("held {key} ")).await;
    }
}

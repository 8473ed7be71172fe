//! Strict arrival order over several processes, for every kind of lock that has it.

use lock_testkit::{ChildProcess, RedisServer};

use crate::{client, until_waiting, worker};

/// The waiters in the order of arrival, each in the next of four processes. They wait with these
/// options, until released.
struct Waiters {
    server: RedisServer,
    workers: Vec<ChildProcess>,
}

impl Waiters {
    async fn start() -> Self {
        let server = RedisServer::start().await;
        let mut workers = Vec::new();
        for _ in 0..4 {
            workers.push(worker(&server.url()).await);
        }
        Self { server, workers }
    }

    fn send(&mut self, number: usize, words: &str) {
        self.workers[number % 4].send(words);
    }

    /// When the request was granted, on the machine's clock.
    async fn granted(&mut self, number: usize) -> u64 {
        let event = format!("held w{number} ");
        let event = self.workers[number % 4].wait_for(&event).await;
        let granted = event.text.split_whitespace().last();
        granted.unwrap().parse().unwrap()
    }

    async fn release(&mut self, number: usize) {
        self.send(number, &format!("release w{number}"));
        let done = format!("done w{number} ");
        self.workers[number % 4].wait_for(&done).await;
    }

    /// Holds `key` with the options `first`. Then come the waiters; no two of them can hold at
    /// once.
    async fn one_after_the_other(key: &str, first: &str, options: impl Fn(usize) -> &'static str) {
        const WAITERS: usize = 20;
        let mut all = Self::start().await;
        let observer = client(&all.server.url()).await;
        all.send(0, &format!("hold w0 {key} {first}"));
        let mut last = all.granted(0).await;
        let watched = key.split(',').next().unwrap();
        for number in 1..=WAITERS {
            let words = format!("hold w{number} {key} {} wait=60000", options(number));
            all.send(number, &words);
            until_waiting(&observer, watched, number).await;
        }
        all.release(0).await;
        for number in 1..=WAITERS {
            let granted = all.granted(number).await;
            assert!(granted > last, "{number} was served before its predecessor");
            last = granted;
            let mut events = all.workers.iter_mut().flat_map(ChildProcess::take_events);
            assert!(
                events.all(|event| !event.text.starts_with("held")),
                "another one holds together with {number}"
            );
            all.release(number).await;
        }
    }
}

#[tokio::test]
async fn writers_of_four_processes_are_served_in_arrival_order() {
    Waiters::one_after_the_other("k", "read", |number| match number % 2 {
        0 => "write",
        _ => "write fair",
    })
    .await;
}

#[tokio::test]
async fn permits_go_to_four_processes_in_arrival_order() {
    // No two of them fit at once.
    Waiters::one_after_the_other("k", "permits=2/3", |number| match number % 3 {
        0 => "permits=3/3 fair",
        1 => "permits=2/3 fair",
        _ => "permits=2/3",
    })
    .await;
}

#[tokio::test]
async fn several_keys_at_once_go_to_four_processes_in_arrival_order() {
    Waiters::one_after_the_other("a,b", "fair", |number| match number % 2 {
        0 => "fair",
        _ => "fair fenced",
    })
    .await;
}

#[tokio::test]
async fn readers_of_four_processes_go_in_front_of_the_writers_that_came_after_them() {
    let mut all = Waiters::start().await;
    let observer = client(&all.server.url()).await;
    all.send(0, "hold w0 k write");
    all.granted(0).await;
    let writes = |number: usize| number.is_multiple_of(5);
    for number in 1..=20 {
        let mode = if writes(number) { "write" } else { "read" };
        all.send(number, &format!("hold w{number} k {mode} wait=60000"));
        until_waiting(&observer, "k", number).await;
    }
    // Four readers enter together, then the writer behind them, and so on.
    let mut released = Vec::from([0]);
    let mut last = 0;
    for group in [
        vec![1, 2, 3, 4],
        vec![5],
        vec![6, 7, 8, 9],
        vec![10],
        vec![11, 12, 13, 14],
        vec![15],
        vec![16, 17, 18, 19],
        vec![20],
    ] {
        for number in released.drain(..) {
            all.release(number).await;
        }
        let mut times = Vec::new();
        for &number in &group {
            times.push(all.granted(number).await);
        }
        assert!(times.iter().all(|time| *time > last), "{group:?}");
        last = times.iter().copied().max().unwrap();
        assert_eq!(observer.inspect("k").await.unwrap().holders, group.len());
        released = group;
    }
}

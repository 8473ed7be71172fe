//! The workloads as one process of a service runs them, the same for every Rust library. README.md
//! describes the line protocol.
//!
//! This file is also compiled into the program with the other crates' locks, so it does not know
//! ours.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::task::JoinSet;

/// A lock as its users see it: take it, however long that takes; release it, and wait for that.
pub(crate) trait Library: Clone + Send + Sync + 'static {
    type Held: Send + 'static;

    fn acquire(&self, key: &str) -> impl Future<Output = Self::Held> + Send;
    fn release(&self, held: Self::Held) -> impl Future<Output = ()> + Send;
}

/// The harness's command line, after the library's name.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) kind: String,
    pub(crate) url: String,
    pub(crate) tasks: usize,
    /// The number of this process among the library's processes.
    pub(crate) process: String,
    /// The machine's monotonic clock in nanoseconds, the same in every process.
    pub(crate) clock: fn() -> u64,
    /// How many allocations there were, in a process that counts them.
    pub(crate) allocations: fn() -> Option<u64>,
}

/// Buckets of 2 %, from a nanosecond to 17 minutes.
const BUCKETS: usize = 1400;
const HOT_KEY: &str = "bench";
const STOCK: &str = "bench-stock";
/// Cycles between two looks at the clock, where a cycle is faster than the clock.
const BATCH: u64 = 100;

impl Job {
    /// `KIND URL TASKS PROCESS`.
    pub(crate) fn read(
        words: &[String],
        clock: fn() -> u64,
        allocations: fn() -> Option<u64>,
    ) -> Self {
        let [kind, url, tasks, process] = words else {
            panic!("LIBRARY KIND URL TASKS PROCESS, and not {words:?}")
        };
        Self {
            kind: kind.clone(),
            url: url.clone(),
            tasks: tasks.parse().expect("a number of tasks"),
            process: process.clone(),
            clock,
            allocations,
        }
    }

    /// A connection of its own, for the work under the lock or beside it.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        redis::Client::open(self.url.as_str())
            .expect("a URL")
            .get_multiplexed_async_connection()
            .await
            .expect("the server is up")
    }

    /// Follows the harness's commands until its input ends.
    pub(crate) async fn run<L: Library>(self, library: L) {
        let mut commands = BufReader::new(tokio::io::stdin()).lines();
        match self.kind.as_str() {
            "turns" => self.turns(library, &mut commands).await,
            "held" => self.held(library, &mut commands).await,
            "crowd" => self.crowd(library, &mut commands).await,
            _ => {
                let shop = match self.kind.as_str() {
                    "sale" => Some(self.connection().await),
                    _ => None,
                };
                println!("ready");
                while let Some(time) = go(&mut commands).await {
                    let report = match self.kind.as_str() {
                        "batch" => batches(&library, time).await,
                        _ => self.cycles(&library, shop.as_ref(), time).await,
                    };
                    println!("{report}");
                }
            }
        }
    }

    /// Every task takes its lock and releases it, over and over.
    async fn cycles<L: Library>(
        &self,
        library: &L,
        shop: Option<&MultiplexedConnection>,
        time: Duration,
    ) -> Value {
        let allocations = (self.allocations)();
        let started = Instant::now();
        let until = started + time;
        let mut running = JoinSet::new();
        for task in 0..self.tasks {
            let key = match self.kind.as_str() {
                "own" => format!("{HOT_KEY}:{}:{task}", self.process),
                _ => HOT_KEY.to_owned(),
            };
            running.spawn(task_cycles(library.clone(), key, shop.cloned(), until));
        }
        let mut tasks = Vec::new();
        let mut waits = vec![0_u64; BUCKETS];
        let mut longest = Duration::ZERO;
        let mut late = 0;
        while let Some(task) = running.join_next().await {
            let task = task.expect("no panic");
            tasks.push(task.cycles);
            late += task.late;
            longest = longest.max(task.longest);
            for (sum, count) in waits.iter_mut().zip(task.waits) {
                *sum += u64::from(count);
            }
        }
        let mut more = BTreeMap::new();
        if let (Some(before), Some(after)) = (allocations, (self.allocations)()) {
            more.insert("allocations", after - before);
        }
        let waits: BTreeMap<usize, u64> = waits
            .into_iter()
            .enumerate()
            .filter(|(_, count)| *count > 0)
            .collect();
        json!({
            "seconds": time.as_secs_f64(),
            "tasks": tasks,
            "late": late,
            "waits": waits,
            "longest_ns": longest.as_nanos() as u64,
            "more": more,
        })
    }

    /// `ask`: takes the lock, and reports since when it has it. `release`: releases it, and reports
    /// when that began.
    async fn turns<L: Library>(&self, library: L, commands: &mut Lines<BufReader<Stdin>>) {
        println!("ready");
        let (held_sender, mut held) = tokio::sync::mpsc::unbounded_channel();
        while let Some(command) = commands.next_line().await.expect("standard input") {
            match command.as_str() {
                "ask" => {
                    let (library, sender, clock) =
                        (library.clone(), held_sender.clone(), self.clock);
                    println!("asking");
                    tokio::spawn(async move {
                        let held = library.acquire(HOT_KEY).await;
                        println!("held {}", clock());
                        let _ = sender.send(held);
                    });
                }
                "release" => {
                    let held = held.recv().await.expect("asked before");
                    let began = (self.clock)();
                    library.release(held).await;
                    println!("released {began}");
                }
                other => panic!("unknown command {other:?}"),
            }
        }
    }

    /// One lock a task, taken before the measurement and kept through it by the library's own
    /// renewal.
    async fn held<L: Library>(&self, library: L, commands: &mut Lines<BufReader<Stdin>>) {
        let mut all = Vec::new();
        let mut asking = JoinSet::new();
        for lock in 0..self.tasks {
            let library = library.clone();
            asking.spawn(async move { library.acquire(&format!("{HOT_KEY}:{lock}")).await });
            if asking.len() == 64 {
                all.extend(asking.join_next().await);
            }
        }
        while let Some(held) = asking.join_next().await {
            all.push(held);
        }
        println!("ready");
        while let Some(time) = go(commands).await {
            tokio::time::sleep(time).await;
            println!("{}", json!({ "seconds": time.as_secs_f64(), "tasks": [] }));
        }
    }

    /// One task holds, and all others wait. First to measure the memory of that; then they get the
    /// lock one after the other.
    async fn crowd<L: Library>(&self, library: L, commands: &mut Lines<BufReader<Stdin>>) {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        static SERVED: AtomicU64 = AtomicU64::new(0);
        let first = library.acquire(HOT_KEY).await;
        let before = resident_bytes();
        for _ in 0..self.tasks {
            let library = library.clone();
            tokio::spawn(async move {
                ASKED.fetch_add(1, Ordering::Relaxed);
                let held = library.acquire(HOT_KEY).await;
                library.release(held).await;
                SERVED.fetch_add(1, Ordering::Relaxed);
            });
        }
        while ASKED.load(Ordering::Relaxed) < self.tasks as u64 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Until all have their places, or for a while if they never rest.
        for _ in 0..10 {
            let before = processor_ticks();
            tokio::time::sleep(Duration::from_secs(1)).await;
            if processor_ticks() < before + 5 {
                break;
            }
        }
        let bytes = resident_bytes().saturating_sub(before);
        println!("ready");
        let Some(time) = go(commands).await else {
            return;
        };
        let started = Instant::now();
        library.release(first).await;
        let mut served = 0;
        while started.elapsed() < time && served < self.tasks as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            served = SERVED.load(Ordering::Relaxed);
        }
        let report = json!({
            "seconds": started.elapsed().as_secs_f64(),
            "tasks": [served],
            "more": { "bytes a waiter": bytes as f64 / self.tasks as f64 },
        });
        println!("{report}");
        // The harness counts until now. Tasks that still wait end with the process.
        std::process::exit(0);
    }
}

struct Done {
    cycles: u64,
    /// Cycles that ended after the end. They count only as cost.
    late: u64,
    waits: Vec<u32>,
    longest: Duration,
}

async fn task_cycles<L: Library>(
    library: L,
    key: String,
    mut shop: Option<MultiplexedConnection>,
    until: Instant,
) -> Done {
    let mut done = Done {
        cycles: 0,
        late: 0,
        waits: vec![0; BUCKETS],
        longest: Duration::ZERO,
    };
    loop {
        let asked = Instant::now();
        if asked >= until {
            return done;
        }
        let held = library.acquire(&key).await;
        let got = Instant::now();
        // A task that still waits at the end has waited until the end.
        done.longest = done.longest.max(got.min(until) - asked);
        if got < until {
            done.waits[bucket(got - asked)] += 1;
            if let Some(shop) = &mut shop {
                sell(shop).await;
            }
        }
        library.release(held).await;
        match Instant::now() < until {
            true => done.cycles += 1,
            false => done.late += 1,
        }
    }
}

/// A user's work under the lock: read, decide, write.
async fn sell(shop: &mut MultiplexedConnection) {
    let stock: Option<i64> = redis::cmd("GET")
        .arg(STOCK)
        .query_async(shop)
        .await
        .expect("a reply");
    redis::cmd("SET")
        .arg(STOCK)
        .arg(stock.unwrap_or(0) - 1)
        .query_async::<()>(shop)
        .await
        .expect("a reply");
}

/// One task whose cycles are too short for a look at the clock in each.
async fn batches<L: Library>(library: &L, time: Duration) -> Value {
    let library = library.clone();
    let cycles = tokio::spawn(async move {
        let started = Instant::now();
        let mut cycles = 0;
        while started.elapsed() < time {
            for _ in 0..BATCH {
                let held = library.acquire(HOT_KEY).await;
                library.release(held).await;
            }
            cycles += BATCH;
        }
        cycles
    });
    json!({ "seconds": time.as_secs_f64(), "tasks": [cycles.await.expect("no panic")] })
}

fn bucket(wait: Duration) -> usize {
    let nanos = (wait.as_nanos() as f64).max(1.0);
    ((nanos.ln() * 50.0) as usize).min(BUCKETS - 1)
}

/// `go SECONDS`, or the end.
async fn go(commands: &mut Lines<BufReader<Stdin>>) -> Option<Duration> {
    let command = commands.next_line().await.expect("standard input")?;
    let seconds = command.strip_prefix("go ").expect("`go SECONDS`");
    Some(Duration::from_secs_f64(seconds.parse().expect("seconds")))
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// The processor time of this process, in hundredths of a second.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in parentheses, can contain anything. User and system time are the 12th
    // and 13th field after it.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let times = fields.split(' ').skip(11).take(2);
    times.filter_map(|time| time.parse::<u64>().ok()).sum()
}

//! One process of a measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::LockClient;
use tokio::runtime::Runtime;

use crate::tally::Tally;
use crate::{etcd, postgres, sqlite, zookeeper};

/// Whose keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Each task has its own.
    Own,
    /// All tasks of all processes have the same.
    One,
}

/// What a process has to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) library: String,
    /// The database's URL.
    pub(crate) place: String,
    pub(crate) tasks: usize,
    pub(crate) keys: Keys,
    pub(crate) seconds: u64,
}

impl Order {
    pub(crate) fn write(&self) -> String {
        let keys = match self.keys {
            Keys::Own => "own",
            Keys::One => "one",
        };
        let Self {
            library,
            place,
            tasks,
            seconds,
            ..
        } = self;
        format!("{library} {tasks} {keys} {seconds} {}", place)
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        Some(Self {
            library: words.next()?.to_owned(),
            tasks: words.next()?.parse().ok()?,
            keys: match words.next()? {
                "own" => Keys::Own,
                _ => Keys::One,
            },
            seconds: words.next()?.parse().ok()?,
            place: words.next()?.into(),
        })
    }

    /// The key of a task.
    pub(crate) fn key(&self, task: usize) -> String {
        match self.keys {
            Keys::Own => format!("key-{task}"),
            Keys::One => "key".to_owned(),
        }
    }
}

/// How many cycles each task has done, and when to end.
#[derive(Debug)]
pub(crate) struct Counts {
    each: Vec<AtomicU64>,
    is_over: AtomicBool,
}

impl Counts {
    pub(crate) fn new(tasks: usize) -> Arc<Self> {
        Arc::new(Self {
            each: std::iter::repeat_with(AtomicU64::default)
                .take(tasks)
                .collect(),
            is_over: AtomicBool::new(false),
        })
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, task: usize) {
        if self.goes_on() {
            self.each[task].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Says that it is ready, waits for the others, works, and says what it did.
pub(crate) fn run(order: &Order) {
    let counts = Counts::new(order.tasks);
    let work = match &*order.library {
        "ours" => ours(order, &counts),
        library if order.place.starts_with(sqlite::SCHEME) => {
            sqlite::by_hand(library, order, &counts)
        }
        _ if order.place.starts_with(zookeeper::SCHEME) => zookeeper::by_hand(order, &counts),
        _ if order.place.starts_with(etcd::SCHEME) => etcd::by_hand(order, &counts),
        library => postgres::by_hand(library, order, &counts),
    };
    println!("ready");
    let mut go = String::new();
    std::io::stdin()
        .read_line(&mut go)
        .expect("the other process");
    let began = Instant::now();
    let work = work.begin();
    std::thread::sleep(Duration::from_secs(order.seconds));
    counts.is_over.store(true, Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    let each: Vec<u64> = counts
        .each
        .iter()
        .map(|one| one.load(Ordering::Relaxed))
        .collect();
    println!("{}", Tally::of(&each, seconds));
    work.end();
}

/// What is connected, and can begin.
pub(crate) struct Work {
    start: Box<dyn FnOnce() -> Running>,
}

/// What runs, and how to wait for its end.
pub(crate) struct Running {
    end: Box<dyn FnOnce()>,
}

impl Work {
    pub(crate) fn new(start: impl FnOnce() -> Running + 'static) -> Self {
        Self {
            start: Box::new(start),
        }
    }

    fn begin(self) -> Running {
        (self.start)()
    }
}

impl Running {
    pub(crate) fn new(end: impl FnOnce() + 'static) -> Self {
        Self { end: Box::new(end) }
    }

    fn end(self) {
        (self.end)();
    }
}

pub(crate) fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads")
}

/// Tasks of this library, with a client of its own for this process.
fn ours(order: &Order, counts: &Arc<Counts>) -> Work {
    let runtime = runtime();
    let builder = LockClient::builder().url(&order.place);
    let builder = builder.command_timeout(Duration::from_secs(5));
    let client = runtime.block_on(builder.connect()).expect("the database");
    let (order, counts) = (order.clone(), Arc::clone(counts));
    Work::new(move || {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..order.tasks {
            let (client, counts, key) = (client.clone(), Arc::clone(&counts), order.key(task));
            let work = async move {
                while counts.goes_on() {
                    let lock = client.lock(key.as_str()).wait(Duration::from_secs(60));
                    let guard = lock.acquire().await.expect("the lock");
                    guard.release().await.expect("the release");
                    counts.count(task);
                }
            };
            tasks.spawn_on(work, runtime.handle());
        }
        Running::new(move || {
            runtime.block_on(tasks.join_all());
        })
    })
}

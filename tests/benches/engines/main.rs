//! What locks cost on the engines that are no Redis, beside loops written by hand against the same
//! database with the same client crate. See the page beside this for how to read the figures.
//!
//! ```sh
//! cargo bench -p lock-benches --bench engines -- --page tests/benches/README.md
//! ```
#![expect(
    clippy::expect_used,
    reason = "a program for its own developers: it can't go on without what it expects"
)]

mod etcd;
mod others;
mod postgres;
mod process;
mod report;
mod sqlite;
mod tally;
mod worker;
mod zookeeper;

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Parser;

use self::process::Round;
use self::report::Table;
use self::worker::{Keys, Order};

/// Measures locks on engines that are no Redis.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each is measured, in turns.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// How long each time.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// One workload only.
    #[arg(long)]
    only: Option<String>,
    /// These engines only: `sqlite`, `postgres`, `zookeeper`, `etcd`.
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Puts the tables into this page, between its marks.
    #[arg(long)]
    page: Option<PathBuf>,
    /// One process of a measurement.
    #[arg(long, hide = true)]
    worker: Option<String>,
    /// Cargo says that this is a benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is measured.
struct Workload {
    name: &'static str,
    processes: usize,
    tasks: usize,
    keys: Keys,
    /// What it is compared with, by the engines' words.
    others: &'static [(&'static str, &'static [&'static str])],
}

const LOOP: &[(&str, &[&str])] = &[
    ("sqlite", &["loop"]),
    ("postgres", &["loop"]),
    ("zookeeper", &["loop"]),
    ("etcd", &["loop"]),
];

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "solo",
        processes: 1,
        tasks: 1,
        keys: Keys::Own,
        others: LOOP,
    },
    Workload {
        name: "many",
        processes: 1,
        tasks: 64,
        keys: Keys::Own,
        others: LOOP,
    },
    Workload {
        name: "hot4",
        processes: 4,
        tasks: 16,
        keys: Keys::One,
        others: &[
            ("sqlite", &["poll"]),
            ("postgres", &["poll", "shedlock", "advisory", "session"]),
            ("zookeeper", &["poll", "curator"]),
            ("etcd", &["poll", "concurrency"]),
        ],
    },
];

/// Where locks are kept.
trait Place {
    fn url(&self) -> String;
}

/// An engine that is measured.
struct Engine {
    word: &'static str,
    name: &'static str,
    /// Whether each measurement has a new one.
    is_new_each_time: bool,
    start: fn() -> Box<dyn Place>,
}

const ENGINES: &[Engine] = &[
    Engine {
        word: "sqlite",
        name: "SQLite",
        is_new_each_time: true,
        start: || Box::new(sqlite::Database::new()),
    },
    Engine {
        word: "postgres",
        name: "PostgreSQL",
        is_new_each_time: true,
        start: || Box::new(postgres::Database::new()),
    },
    Engine {
        word: "zookeeper",
        name: "ZooKeeper",
        is_new_each_time: false,
        start: || Box::new(zookeeper::Ensemble::new()),
    },
    Engine {
        word: "etcd",
        name: "etcd",
        is_new_each_time: false,
        start: || Box::new(etcd::Cluster::new()),
    },
];

fn main() {
    let arguments = Arguments::parse();
    if let Some(order) = &arguments.worker {
        worker::run(&Order::read(order).expect("the order of the other process"));
        return;
    }
    // Cargo starts it in its own folder. A path of the caller's begins at the repository's.
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(workspace).expect("the workspace's folder");
    let is_measured = |engine: &&Engine| {
        let engines = &arguments.engines;
        engines.is_empty() || engines.iter().any(|word| word == engine.word)
    };
    let mut table = Table::default();
    let mut kept: HashMap<&str, Box<dyn Place>> = HashMap::new();
    let mut programs: HashMap<&str, Option<Vec<String>>> = HashMap::new();
    for round in 0..arguments.rounds {
        let is_wanted = |workload: &&Workload| {
            let only = arguments.only.as_deref();
            only.is_none_or(|only| only == workload.name)
        };
        for workload in WORKLOADS.iter().filter(is_wanted) {
            for engine in ENGINES.iter().filter(is_measured) {
                let others = workload
                    .others
                    .iter()
                    .find(|(word, _)| *word == engine.word);
                for library in others
                    .map_or(&[][..], |(_, others)| others)
                    .iter()
                    .chain(&["ours"])
                {
                    let program = programs.entry(library);
                    let Some(program) = program.or_insert_with(|| others::program(library)) else {
                        continue;
                    };
                    let place = match engine.is_new_each_time {
                        true => None,
                        false => Some(&*kept.entry(engine.word).or_insert_with(engine.start)),
                    };
                    let new = place.is_none().then(engine.start);
                    let place = place.or(new.as_ref()).map(|place| place.url());
                    let order = Order {
                        library: (*library).to_owned(),
                        place: place.unwrap_or_default(),
                        tasks: workload.tasks,
                        keys: workload.keys,
                        seconds: arguments.seconds,
                    };
                    let tally = Round::start(program, &order, workload.processes).run();
                    let (name, workload) = (engine.name, workload.name);
                    eprintln!("{round}: {name} {workload} {library}: {tally}");
                    table.note(name, workload, library, tally);
                }
            }
        }
    }
    for (mark, engines) in [
        ("engines", ["PostgreSQL", "SQLite"]),
        ("consensus", ["ZooKeeper", "etcd"]),
    ] {
        if let Some(text) = table.text(&engines, arguments.rounds, arguments.seconds) {
            println!("{text}");
            if let Some(page) = &arguments.page {
                report::put(page, mark, &text);
            }
        }
    }
}

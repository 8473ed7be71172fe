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

mod postgres;
mod process;
mod report;
mod sqlite;
mod tally;
mod worker;

use std::path::PathBuf;

use clap::Parser;

use self::process::Round;
use self::report::Table;
use self::worker::{Keys, Order};

/// Measures locks on databases.
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
    /// What it is compared with.
    on_sqlite: &'static [&'static str],
    on_postgres: &'static [&'static str],
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "solo",
        processes: 1,
        tasks: 1,
        keys: Keys::Own,
        on_sqlite: &["loop"],
        on_postgres: &["loop"],
    },
    Workload {
        name: "many",
        processes: 1,
        tasks: 64,
        keys: Keys::Own,
        on_sqlite: &["loop"],
        on_postgres: &["loop"],
    },
    Workload {
        name: "hot4",
        processes: 4,
        tasks: 16,
        keys: Keys::One,
        on_sqlite: &["poll"],
        on_postgres: &["poll", "shedlock", "advisory", "session"],
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
    let mut table = Table::default();
    for round in 0..arguments.rounds {
        for workload in WORKLOADS {
            if arguments
                .only
                .as_deref()
                .is_some_and(|only| only != workload.name)
            {
                continue;
            }
            let mut measure = |engine: &str, library: &str, place: String| {
                let order = Order {
                    library: library.to_owned(),
                    place,
                    tasks: workload.tasks,
                    keys: workload.keys,
                    seconds: arguments.seconds,
                };
                let tally = Round::start(&order, workload.processes).run();
                let name = workload.name;
                eprintln!("{round}: {engine} {name} {library}: {tally}");
                table.note(engine, name, library, tally);
            };
            for library in workload.on_sqlite.iter().chain(&["ours"]) {
                let database = sqlite::Database::new();
                measure("SQLite", library, database.url());
            }
            for library in workload.on_postgres.iter().chain(&["ours"]) {
                let database = postgres::Database::new();
                measure("PostgreSQL", library, database.url());
            }
        }
    }
    let text = table.text(arguments.rounds, arguments.seconds);
    println!("{text}");
    if let Some(page) = arguments.page {
        report::put(&page, &text);
    }
}

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

/// What is measured: its name, how many processes and tasks, whose keys, and what is compared.
const WORKLOADS: &[(&str, usize, usize, Keys, &[&str])] = &[
    ("solo", 1, 1, Keys::Own, &["loop", "ours"]),
    ("many", 1, 64, Keys::Own, &["loop", "ours"]),
    ("hot4", 4, 16, Keys::One, &["poll", "ours"]),
];

fn main() {
    let arguments = Arguments::parse();
    if let Some(order) = &arguments.worker {
        worker::run(&Order::read(order).expect("the order of the other process"));
        return;
    }
    let mut table = Table::default();
    for round in 0..arguments.rounds {
        for (workload, processes, tasks, keys, libraries) in WORKLOADS {
            for library in *libraries {
                let database = sqlite::Database::new();
                let order = Order {
                    library: (*library).to_owned(),
                    place: database.path(),
                    tasks: *tasks,
                    keys: *keys,
                    seconds: arguments.seconds,
                };
                let tally = Round::start(&order, *processes).run();
                eprintln!("{round}: sqlite {workload} {library}: {tally}");
                table.note("SQLite", workload, library, tally);
            }
        }
    }
    let text = table.text(arguments.rounds, arguments.seconds);
    println!("{text}");
    if let Some(page) = arguments.page {
        report::put(&page, &text);
    }
}

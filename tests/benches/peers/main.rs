//! Compares our lock with others, and with the same work without a lock, in one run against one
//! redis-server: `cargo bench -p lock-benches --bench peers`. `README.md` in this folder's parent
//! says what is measured and how to read it.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that can't go on ends"
)]

mod aims;
mod allocations;
mod attribute;
mod bare;
mod chain;
mod chart;
mod figures;
mod machine;
mod ours;
mod plan;
mod process;
mod report;
mod round;
mod servers;
mod summary;
mod toolchains;
mod worker;

use std::path::PathBuf;

use clap::Parser;

use crate::figures::{Contender, Figures, Measured, Results};
use crate::plan::{LIBRARIES, Library, Toolchain, Topology, WORKLOADS, Workload};
use crate::servers::Servers;

/// Measures locks of several libraries in one run.
#[derive(Debug, Parser)]
struct Options {
    /// Only these, separated by commas: solo, many, many-cluster, many-replicas, hot, hot4, sale,
    /// sale4, handoff, held, crowd, memory, attribute.
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// Only these, separated by commas, such as ours,bare,rslock.
    #[arg(long, value_delimiter = ',')]
    libraries: Vec<String>,
    /// How often each library goes through each workload, in turn with the others.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each time.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Writes all figures to this file; paths are from the workspace's folder.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Measures nothing: reads such a file.
    #[arg(long)]
    from: Option<PathBuf>,
    /// Draws a picture into this file.
    #[arg(long)]
    chart: Option<PathBuf>,
    /// Puts the tables into these pages, between their marks.
    #[arg(long)]
    page: Vec<PathBuf>,
    /// Cargo passes this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(toolchains::WORKER) => return ours::work(&arguments[1..]).await,
        Some(toolchains::COUNTING_WORKER) => {
            allocations::count();
            return ours::work(&arguments[1..]).await;
        }
        _ => {}
    }
    let options = Options::parse();
    // Paths are relative to the workspace's folder. Cargo runs benchmarks in their package's
    // folder.
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(workspace).expect("the workspace's folder");
    let results = match &options.from {
        Some(file) => {
            let text = std::fs::read_to_string(file).expect("the file of figures");
            serde_json::from_str(&text).expect("figures")
        }
        None => run(&options).await,
    };
    let tables = report::markdown(&results);
    println!("{tables}");
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&results).expect("figures are JSON");
        std::fs::write(file, text + "\n").expect("the file of figures");
    }
    if let Some(file) = &options.chart {
        std::fs::write(file, chart::draw(&results)).expect("the picture");
    }
    for file in &options.page {
        let page = std::fs::read_to_string(file).expect("the page");
        let page = report::put_into(&page, "figures", &tables);
        let page = report::put_into(&page, "ratios", &summary::markdown(&results));
        std::fs::write(file, page).expect("the page");
    }
}

async fn run(options: &Options) -> Results {
    check_names(
        "workload",
        &options.workloads,
        WORKLOADS.iter().map(|one| one.name),
    );
    check_names(
        "library",
        &options.libraries,
        LIBRARIES.iter().map(|one| one.name),
    );
    let wanted =
        |names: &[String], name: &str| names.is_empty() || names.iter().any(|one| one == name);
    let mut results = Results {
        machine: machine::describe(),
        command: command_line(),
        ..Results::default()
    };
    let mut programs = Vec::new();
    for toolchain in [
        Toolchain::Ours,
        Toolchain::Rust,
        Toolchain::Java,
        Toolchain::Go,
        Toolchain::Python,
    ] {
        let mut libraries = LIBRARIES
            .iter()
            .filter(|library| {
                library.toolchain == toolchain && wanted(&options.libraries, library.name)
            })
            .peekable();
        if libraries.peek().is_none() {
            continue;
        }
        match toolchains::build(toolchain) {
            Ok(program) => programs.extend(libraries.map(|library| (library, program.clone()))),
            Err(why) => {
                for library in libraries {
                    let message = format!("{} is left out: {why}", library.name);
                    eprintln!("{message}");
                    results.skipped.push(message);
                }
            }
        }
    }
    let one = Servers::start(Topology::One).await;
    for workload in WORKLOADS
        .iter()
        .filter(|one| wanted(&options.workloads, one.name))
    {
        let taking_part: Vec<_> = programs
            .iter()
            .filter(|(library, _)| library.takes_part_in(workload))
            .collect();
        let several;
        let servers = match workload.topology {
            Topology::One => &one,
            topology => {
                several = Servers::start(topology).await;
                &several
            }
        };
        let measured = rounds(
            servers,
            workload,
            &taking_part,
            options,
            &mut results.skipped,
        )
        .await;
        eprintln!("{}", report::workload(&measured));
        results.workloads.push(measured);
    }
    results
}

/// All libraries in turn, this many times. Each round begins with another one.
async fn rounds(
    servers: &Servers,
    workload: &Workload,
    taking_part: &[&(&Library, Vec<String>)],
    options: &Options,
    skipped: &mut Vec<String>,
) -> Measured {
    let mut rounds: Vec<Vec<Figures>> = vec![Vec::new(); taking_part.len()];
    for round in 0..options.rounds {
        for turn in 0..taking_part.len() {
            let index = (turn + round) % taking_part.len();
            let (library, program) = taking_part[index];
            eprint!(
                "{} round {} {}      \r",
                workload.name,
                round + 1,
                library.name
            );
            match round::measure(servers, workload, library, program, options.seconds).await {
                Ok(figures) => rounds[index].push(figures),
                Err(why) => {
                    let message = format!(
                        "{} in {}, round {}: {why}",
                        library.name,
                        workload.name,
                        round + 1
                    );
                    eprintln!("{message}");
                    skipped.push(message);
                }
            }
        }
    }
    let libraries = taking_part
        .iter()
        .zip(rounds)
        .filter(|(_, rounds)| !rounds.is_empty())
        .map(|((library, _), rounds)| Contender {
            name: library.name.to_owned(),
            about: library.about.to_owned(),
            median: figures::medians(&rounds),
            rounds,
        })
        .collect();
    Measured {
        name: workload.name.to_owned(),
        about: workload.about.to_owned(),
        reference: workload.reference.to_owned(),
        libraries,
    }
}

fn check_names(what: &str, given: &[String], known: impl Iterator<Item = &'static str>) {
    let known: Vec<_> = known.collect();
    for name in given {
        assert!(
            known.contains(&name.as_str()),
            "there is no {what} {name:?}; there are {}",
            known.join(", ")
        );
    }
}

/// The command that repeats this run.
fn command_line() -> String {
    let given = std::env::args().skip(1).filter(|word| word != "--bench");
    let given: Vec<_> = given.collect();
    let mut command = "cargo bench -p lock-benches --bench peers".to_owned();
    if !given.is_empty() {
        command.push_str(" -- ");
        command.push_str(&given.join(" "));
    }
    command
}

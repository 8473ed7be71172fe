//! Breaks the Lua scripts in every small way, and counts the mistakes that the tests find: `cargo
//! run -p lock-long --bin script-mutants -- --jobs N`.
//!
//! `--only FILE` or `--only FILE:LINE`, any number of times, takes the mutants of one script or
//! line. `--quick` leaves out the longer tests, which find a few more. `--list` prints the mutants
//! without a test. The exit status is 1 if fewer than 90 % were found.

use std::process::ExitCode;

use lock_long::script_mutants::{mutants, run};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: script-mutants [--jobs N] [--only FILE[:LINE]]... [--quick] [--list]";

#[derive(Default)]
struct Options {
    jobs: usize,
    only: Vec<String>,
    quick: bool,
    list: bool,
}

#[tokio::main]
async fn main() -> Result<ExitCode, String> {
    let options = options()?;
    let mutants = mutants(&options.only).await?;
    if options.list {
        for mutant in &mutants {
            println!("{mutant}");
        }
        println!("{} mutants", mutants.len());
        return Ok(ExitCode::SUCCESS);
    }
    let mut terminated =
        signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    // A signal ends this program here, and with it everything that it started.
    tokio::select! {
        report = run(mutants, options.jobs, options.quick) => {
            let report = report?;
            println!("{report}");
            Ok(if report.is_enough() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
        _ = terminated.recv() => Err("terminated".to_owned()),
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        jobs: 1,
        ..Options::default()
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--list" => options.list = true,
            "--quick" => options.quick = true,
            "--only" => options.only.push(words.next().ok_or(USAGE)?),
            "--jobs" => {
                let jobs = words.next().and_then(|number| number.parse().ok());
                options.jobs = jobs.ok_or(USAGE)?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

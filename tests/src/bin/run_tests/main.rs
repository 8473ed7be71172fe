//! Runs built tests side by side; `bash tests/run` calls it.
//!
//! `run-tests --jobs N [--limit SECONDS] --times FILE MESSAGES [FILTER] [--skip PART]...`
//!
//! `MESSAGES` is the output of `cargo test --no-run --message-format=json`. Each test is a process
//! of its own, so that it is alone with its statics, its time is known, and a slow one holds up no
//! other. A program that keeps servers up between its tests runs as a whole. The output of failed
//! tests is printed, and that of others is not. Programs that compute run beside those that wait,
//! one on each core, and yield to them. A test that does not end within the limit (300 s; if it
//! computes, twice that, once none is left that it yields to) has failed: it is ended with all that
//! it started. `FILE` gets a line for each test: its seconds and its name. The exit status is 1 if
//! a test failed, or if there was none although nothing was filtered out.

mod process;
mod programs;
mod queue;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::process::Running;
use self::queue::Queue;
use self::trial::{Outcome, Trial};

const USAGE: &str = "usage: run-tests --jobs N [--limit SECONDS] --times FILE MESSAGES \
                     [FILTER] [--skip PART]...";

/// Far more than any test needs.
const LIMIT: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("run-tests: {error}");
            ExitCode::from(2)
        }
    }
}

struct Options {
    jobs: usize,
    limit: Duration,
    times: PathBuf,
    messages: PathBuf,
    filters: Vec<String>,
}

fn options() -> Option<Options> {
    let mut words = std::env::args().skip(1);
    let (mut jobs, mut limit, mut times) = (None, LIMIT, None);
    loop {
        match words.next()?.as_str() {
            "--jobs" => jobs = words.next()?.parse().ok().filter(|jobs| *jobs > 0),
            "--limit" => limit = Duration::from_secs(words.next()?.parse().ok()?),
            "--times" => times = words.next().map(PathBuf::from),
            messages => {
                return Some(Options {
                    jobs: jobs?,
                    limit,
                    times: times?,
                    messages: messages.into(),
                    filters: words.collect(),
                });
            }
        }
    }
}

/// True if all is well.
fn run() -> Result<bool, String> {
    let options = options().ok_or(USAGE)?;
    let began = Instant::now();
    let programs = programs::read(&options.messages)?;
    let mut trials = Vec::new();
    for program in &programs {
        trials.extend(trial::of(program, &options.filters)?);
    }
    let (computing, waiting): (Vec<_>, Vec<_>) = trials
        .into_iter()
        .partition(|trial| trial.program.is_computing());
    let (computing, waiting) = (Queue::new(computing), Queue::new(waiting));
    let done: Mutex<Vec<(&Trial<'_>, Outcome)>> = Mutex::default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let waits = Running::new(options.jobs);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| work(&computing, &done, &options, &waits));
        }
        for _ in 0..options.jobs {
            scope.spawn(|| {
                work(&waiting, &done, &options, &waits);
                waits.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let passed = report(&done, programs.len(), began);
    Ok(failed_none(&done) && (passed > 0 || !options.filters.is_empty()))
}

/// Runs a queue's trials until none is left.
fn work<'q>(
    queue: &'q Queue<'_>,
    done: &Mutex<Vec<(&'q Trial<'q>, Outcome)>>,
    options: &Options,
    waits: &Running,
) {
    while let Some(trial) = queue.next() {
        let outcome = trial.run(&options.times, options.limit, waits);
        if let Some(output) = &outcome.failure {
            println!("---- {} failed ----\n{output}", trial.name());
        }
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push((trial, outcome));
    }
}

fn failed_none(done: &[(&Trial<'_>, Outcome)]) -> bool {
    done.iter().all(|(_, outcome)| outcome.failure.is_none())
}

/// How many tests passed.
fn report(done: &[(&Trial<'_>, Outcome)], programs: usize, began: Instant) -> u64 {
    let tests: u64 = done.iter().map(|(_, outcome)| outcome.tests).sum();
    let mut failed: Vec<String> = done
        .iter()
        .filter(|(_, outcome)| outcome.failure.is_some())
        .map(|(trial, _)| trial.name())
        .collect();
    failed.sort_unstable();
    let took = began.elapsed().as_secs();
    println!(
        "{tests} tests of {programs} programs passed in {took} s, {} failed",
        failed.len()
    );
    for name in &failed {
        println!("    {name}");
    }
    tests
}

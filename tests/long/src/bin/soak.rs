//! Tries to break the lock for as long as one likes:
//! `cargo run -p lock-long --bin soak -- --minutes N --seed S --engine postgres`.
//!
//! It makes runs of a minute each, one after the other. Each has an empty server and a seed of its
//! own. At the end it prints a report of all. The exit status is 1 if a run found what must not be,
//! under faults that a lock must bear. With `worker` as its first argument it is one of the
//! processes under load; there is no need to start that by hand. `--beside PROGRAM` names the
//! `nemesis-worker` of another version, which every second process runs. With `--faults servers`,
//! only servers fail.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lock_testkit::nemesis::{Engine, Fault, Report, Settings, run, run_worker};
use lock_testkit::seeded::Seeded;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: soak [--minutes N] [--seed S] \
    [--engine redis|sentinel|replicas|cluster|quorum|postgres|sqlite|etcd|zookeeper] \
    [--beside PROGRAM] [--faults servers]";
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, words @ ..] = &arguments[..]
        && first == "worker"
    {
        run_worker(words).await;
        return Ok(ExitCode::SUCCESS);
    }
    let options = options(&arguments)?;
    let engine = options.engine;
    let mut terminated =
        signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    // A signal ends this program here, and with it everything that it started.
    tokio::select! {
        report = soak(options) => {
            println!("{report}");
            let none = engine.has_failovers() && !report.faults.contains_key(&Fault::Failover);
            if none {
                println!("no other server took over, so that this shows nothing about it");
            }
            let in_vain = report.runs_in_vain();
            if in_vain > 0 {
                println!("runs that say nothing, since their servers came to differ: {in_vain}");
            }
            let failed = none || in_vain > 0 || report.in_model().next().is_some();
            Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
        _ = terminated.recv() => Err("terminated".to_owned()),
    }
}

struct Options {
    program: PathBuf,
    beside: Option<PathBuf>,
    minutes: u64,
    seed: u64,
    engine: Engine,
    servers_only: bool,
}

fn options(arguments: &[String]) -> Result<Options, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (mut minutes, mut seed) = (1, u64::from(std::process::id()));
    let (mut engine, mut beside, mut servers_only) = (Engine::Redis, None, false);
    for option in arguments.chunks(2) {
        let value = option.get(1).map(String::as_str).unwrap_or_default();
        match (option[0].as_str(), value, value.parse()) {
            ("--minutes", _, Ok(number)) => minutes = number,
            ("--seed", _, Ok(number)) => seed = number,
            ("--faults", "servers", _) => servers_only = true,
            ("--beside", program, _) if !program.is_empty() => beside = Some(program.into()),
            ("--engine", name, _) => {
                let mut named = Engine::NAMED.iter();
                let found = named.find(|(other, _)| *other == name);
                engine = found.ok_or(USAGE)?.1;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(Options {
        program,
        beside,
        minutes,
        seed,
        engine,
        servers_only,
    })
}

async fn soak(options: Options) -> Report {
    let Options {
        program,
        beside,
        minutes,
        seed,
        engine,
        servers_only,
    } = options;
    let mut seeds = Seeded::new(seed);
    let mut all = Report::default();
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    // The first run has the seed itself, so that the seed of a failed run repeats it.
    let mut next = seed;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let length = left.min(MINUTE);
        eprintln!("a run of {length:.0?} with seed {next}");
        let mut settings = Settings::new(&program, next, length).on(engine);
        settings.beside.clone_from(&beside);
        if servers_only {
            settings = settings.of_servers_only();
        }
        let report = run(&settings).await;
        for violation in report.in_model() {
            eprintln!("seed {next}: {violation}");
        }
        all.add(report);
        next = seeds.any();
        // The time that is left is too short for all faults.
        if Instant::now() + MINUTE / 2 > until {
            return all;
        }
    }
}

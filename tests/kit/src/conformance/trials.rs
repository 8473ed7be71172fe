//! Each behaviour on each store, as a test with a name.

use std::io::Write;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};

use super::arguments::{self, Chosen};
use super::engine::Engine;
use super::servers::Servers;
use super::{Behaviour, lists};

/// Many more threads than servers. The servers limit how many tests run at once, so a test that
/// waits for one store's servers holds up no other store.
const THREADS: usize = 64;

/// Runs the behaviours on these engines, as the command line says.
#[must_use]
pub fn run(engines: &[Engine]) -> ExitCode {
    let mut chosen: Chosen = arguments::read();
    let arguments = &mut chosen.arguments;
    arguments.test_threads.get_or_insert(THREADS);
    let repeat = std::env::var("CONFORMANCE_REPEAT");
    let repeat: usize = repeat.map_or(1, |times| times.parse().expect("a number"));
    let mut placed = Vec::new();
    for engine in engines {
        let servers = Arc::new(Servers::new(*engine));
        let (behaviours, left_out) = lists::of(engine);
        if !left_out.is_empty() && chosen.is_everything() {
            eprintln!("{engine:?}: left out for what it lacks: {left_out:?}");
        }
        let trials: Vec<Trial> = behaviours
            .into_iter()
            .flat_map(|behaviour| std::iter::repeat_n(behaviour, repeat))
            .map(|behaviour| trial(engine, &servers, behaviour))
            .collect();
        let all = trials.len();
        let place = |(at, trial)| ((at * 1000) / all, trial);
        placed.extend(trials.into_iter().enumerate().map(place));
    }
    placed.retain(|(_, trial)| chosen.has(trial));
    if !chosen.arguments.list {
        // All stores side by side from beginning to end, because few servers of each run at once.
        placed.sort_by_key(|(place, _)| *place);
    }
    let trials = placed.into_iter().map(|(_, trial)| trial).collect();
    libtest_mimic::run(&chosen.arguments, trials).exit_code()
}

fn trial(engine: &Engine, servers: &Arc<Servers>, behaviour: Behaviour) -> Trial {
    let path = behaviour
        .name
        .trim_start_matches("lock_testkit::conformance::");
    let (name, servers) = (format!("{engine:?}::{path}"), servers.clone());
    Trial::test(name.clone(), move || {
        timed(&name, move || servers.run(behaviour))
    })
}

/// Runs in a thread with the test's name, so that a panic's message shows it.
fn timed(name: &str, test: impl FnOnce() -> Duration + Send + 'static) -> Result<(), Failed> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    match thread.spawn(test)?.join() {
        Ok(took) => note(name, took),
        Err(panic) => resume_unwind(panic),
    }
}

/// For `tests/run`, which prints the slowest tests.
fn note(name: &str, took: Duration) -> Result<(), Failed> {
    if let Some(file) = std::env::var_os("TEST_TIMES") {
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file)?;
        let line = format!("{:.3} {name}\n", took.as_secs_f64());
        file.write_all(line.as_bytes())?;
    }
    Ok(())
}

//! Each behaviour on each store, as a test with a name.

use std::io::Write;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::Behaviour;
use crate::servers::Servers;
use crate::store::Store;

/// Behaviours wait for leases to end, most of the time.
const AT_ONCE: usize = 12;

pub(crate) fn run(mut arguments: Arguments) -> ExitCode {
    arguments.test_threads.get_or_insert(AT_ONCE);
    let repeat = std::env::var("CONFORMANCE_REPEAT");
    let repeat: usize = repeat.map_or(1, |times| times.parse().expect("a number"));
    let mut placed = Vec::new();
    for store in Store::ALL {
        let (servers, behaviours) = (Arc::new(Servers::new(store)), store.behaviours());
        let trials: Vec<Trial> = behaviours
            .flat_map(|behaviour| std::iter::repeat_n(behaviour, repeat))
            .map(|behaviour| trial(store, &servers, behaviour))
            .collect();
        let all = trials.len();
        let place = |(at, trial)| ((at * 1000) / all, trial);
        placed.extend(trials.into_iter().enumerate().map(place));
    }
    if !arguments.list {
        // All stores side by side from the beginning to the end, because few of each are up at once.
        placed.sort_by_key(|(place, _)| *place);
    }
    let trials = placed.into_iter().map(|(_, trial)| trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(store: Store, servers: &Arc<Servers>, behaviour: Behaviour) -> Trial {
    let path = behaviour.name.trim_start_matches("conformance::");
    let (name, servers) = (format!("{store}::{path}"), servers.clone());
    Trial::test(name.clone(), move || {
        timed(&name, move || servers.run(behaviour))
    })
}

/// In a thread of the test's name, which a panic's message tells.
fn timed(name: &str, test: impl FnOnce() + Send + 'static) -> Result<(), Failed> {
    let began = Instant::now();
    let thread = std::thread::Builder::new().name(name.to_owned());
    if let Err(panic) = thread.spawn(test)?.join() {
        resume_unwind(panic);
    }
    note(name, began)
}

/// For `tests/run`, which prints the slowest.
fn note(name: &str, began: Instant) -> Result<(), Failed> {
    if let Some(file) = std::env::var_os("TEST_TIMES") {
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file)?;
        let line = format!("{:.3} {name}\n", began.elapsed().as_secs_f64());
        file.write_all(line.as_bytes())?;
    }
    Ok(())
}

//! Breaks the Lua scripts in every small way, and runs the tests on each: how many of the mistakes
//! do they find?
//!
//! One build serves all mutants: a test program takes its scripts from the folder named by
//! `LOCK_SCRIPTS`. First the tests must be green with an unchanged copy, and red with scripts that
//! do nothing. Otherwise the rest would show nothing.

mod change;
mod line;
mod mutant;
mod report;
mod scripts;
mod suite;
mod survivors;
mod trial;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

pub use self::mutant::Mutant;
pub use self::report::Report;
use self::scripts::Scripts;
use self::suite::Suite;
use self::trial::Verdict;

/// All mutants of the scripts that Lua compiles, in the order of the files. If files or lines
/// (`FILE:LINE`) are named, only theirs.
///
/// # Errors
///
/// If the scripts can't be read.
pub async fn mutants(only: &[String]) -> Result<Vec<Mutant>, String> {
    mutant::all(&Scripts::read()?, only).await
}

/// Tries the tests on each of the mutants, so many at a time. Quick tests miss a few that longer
/// ones find.
///
/// # Errors
///
/// If the tests can't be built, are red without a mutant, or can't tell scripts that do nothing.
pub async fn run(mutants: Vec<Mutant>, jobs: usize, quick: bool) -> Result<Report, String> {
    let scripts = Arc::new(Scripts::read()?);
    let suite = Arc::new(Suite::build().await?);
    trial::can_tell(&suite, &scripts, quick).await?;
    let all = mutants.len();
    let left = Arc::new(Mutex::new(VecDeque::from(mutants)));
    let mut workers = JoinSet::new();
    for _ in 0..jobs.max(1) {
        let (suite, scripts, left) = (suite.clone(), scripts.clone(), left.clone());
        workers.spawn(async move {
            let mut tried = Vec::new();
            loop {
                let (mutant, number) = {
                    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(mutant) = left.pop_front() else {
                        return Ok(tried);
                    };
                    (mutant, all - left.len())
                };
                let verdict = trial::of(&suite, &scripts, &mutant, quick).await?;
                eprintln!("{number}/{all} {mutant}: {verdict}");
                tried.push((mutant, verdict));
            }
        });
    }
    let mut tried: Vec<(Mutant, Verdict)> = Vec::new();
    while let Some(worker) = workers.join_next().await {
        let of_worker: Result<_, String> = worker.map_err(|error| error.to_string())?;
        tried.extend(of_worker?);
    }
    tried.sort_by_key(|(mutant, _)| mutant.number);
    Ok(Report { tried })
}

/// The repository's folder.
fn repository() -> PathBuf {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.pop();
    folder.pop();
    folder
}

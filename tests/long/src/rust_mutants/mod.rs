//! Breaks a folder of the library ([`Target`]) in every small way.
//!
//! One build serves all mutants. In a copy of the repository each place that can be wrong asks at
//! run time whether it is to be, and the variable `LOCK_MUTANT` says which one is. Changes that the
//! compiler refuses are taken out first: the others are the mutants.

mod copy;
mod find;
mod stages;
mod survivors;
mod target;
mod weave;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use self::copy::Copy;
pub use self::target::Target;
use crate::mutants::{
    Environment, Mutant, Options, Report, Scene, Stage, Subject, Suite, WAITING, asked_for, print,
};

/// Which mutant a program has: its number, or `all`.
const CHOSEN: &str = "LOCK_MUTANT";
/// A folder with a file for each test, to which a program writes the number of each mutant whose
/// place it comes to.
const REACHED: &str = "LOCK_MUTANTS_REACHED";

/// Tries the tests on each mutant that is asked for, or only prints them.
///
/// # Errors
///
/// If the copy can't be made or built, or its tests are red without a mutant, or can't tell when
/// all is broken.
pub async fn run(target: Target, options: &Options) -> Result<Option<Report>, String> {
    let copy = Copy::make(target)?;
    let (mutants, reasons) = asked_for(copy.mutants()?, target.known, options)?;
    if options.list {
        print(&mutants);
        return Ok(None);
    }
    let mut arguments = copy.arguments();
    arguments.extend(stages::BUILT.map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let suite = Suite::build(
        copy.folder(),
        &arguments,
        target.programs,
        options.jobs * WAITING,
    )
    .await?;
    let subject = BrokenCode {
        target,
        copy,
        suite,
        reached: Mutex::default(),
    };
    let report = crate::mutants::run(subject, mutants, reasons, options).await?;
    Ok(Some(report))
}

#[derive(Debug)]
struct BrokenCode {
    target: Target,
    copy: Copy,
    suite: Suite,
    reached: Mutex<BTreeMap<String, OfTests>>,
}

/// The numbers of the mutants whose places each test of a stage comes to. Tests that are not told
/// apart are one.
type OfTests = BTreeMap<String, BTreeSet<usize>>;

impl Subject for BrokenCode {
    fn suite(&self) -> &Suite {
        &self.suite
    }

    fn all_stages(&self, quick: bool) -> Vec<Stage> {
        (self.target.stages)(quick)
    }

    fn stages(&self, mutant: &Mutant, quick: bool) -> Vec<Stage> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let mut meet = Vec::new();
        for stage in self.all_stages(quick) {
            let of_stage = reached.get(&stage.to_string()).into_iter().flatten();
            let comes = of_stage.filter(|(_, numbers)| numbers.contains(&mutant.number));
            let mut tests: Vec<String> = comes.map(|(test, _)| test.clone()).collect();
            if tests.is_empty() {
                continue;
            }
            // The quick ones first.
            tests.sort_by_key(|test| self.suite.time(&stage, test));
            meet.push(match stage.is_apart() {
                true => stage.just(tests),
                false => stage,
            });
        }
        meet
    }

    fn environment(&self, scene: Scene<'_>) -> Result<Environment, String> {
        let mut environment = Environment {
            // A snapshot that differs is a failure, and is not written.
            variables: vec![
                ("INSTA_UPDATE", "no".into()),
                ("INSTA_WORKSPACE_ROOT", self.copy.folder().into()),
            ],
            folder: None,
        };
        let chosen = match scene {
            Scene::Ruin => OsString::from("all"),
            Scene::One(mutant) => mutant.number.to_string().into(),
            Scene::Whole => {
                let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
                environment.variables.push((REACHED, folder.path().into()));
                environment.folder = Some(folder);
                return Ok(environment);
            }
        };
        environment.variables.push((CHOSEN, chosen));
        Ok(environment)
    }

    fn saw(&self, stage: &Stage, whole: &Environment) -> Result<(), String> {
        let folder = whole
            .folder
            .as_ref()
            .ok_or("no folder for what was reached")?;
        let wrong = |error: std::io::Error| format!("what {stage} comes to: {error}");
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let of_stage = reached.entry(stage.to_string()).or_default();
        for entry in std::fs::read_dir(folder.path()).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let text = std::fs::read_to_string(&path).map_err(wrong)?;
            let test = path.file_name().unwrap_or_default().to_string_lossy();
            let numbers = text.lines().filter_map(|line| line.parse::<usize>().ok());
            of_stage
                .entry(test.into_owned())
                .or_default()
                .extend(numbers);
        }
        match of_stage.is_empty() {
            true => Err(format!("{stage} comes to no place that can be wrong")),
            false => Ok(()),
        }
    }
}

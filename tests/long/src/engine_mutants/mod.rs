//! Breaks the engine (`lock-runtime/src/engine`) in every small way.
//!
//! One build serves all mutants. In a copy of the repository each place that can be wrong asks at
//! run time whether it is to be, and the variable `LOCK_MUTANT` says which one is. Changes that the
//! compiler refuses are taken out first: the others are the mutants.

mod copy;
mod find;
mod stages;
mod survivors;
mod weave;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use self::copy::Copy;
use crate::mutants::{Environment, Mutant, Options, Report, Scene, Stage, Subject, Suite, print};

/// Which mutant a program has: its number, or `all`.
const CHOSEN: &str = "LOCK_MUTANT";
/// A file to which a program writes the number of each mutant whose place it comes to.
const REACHED: &str = "LOCK_MUTANTS_REACHED";

/// Tries the tests on each mutant that is asked for, or only prints them.
///
/// # Errors
///
/// If the copy can't be made or built, or its tests are red without a mutant, or can't tell when
/// all is broken.
pub async fn run(options: &Options) -> Result<Option<Report>, String> {
    let copy = Copy::make()?;
    let mutants = copy.mutants(options)?;
    if mutants.is_empty() {
        return Err("there are no such mutants".to_owned());
    }
    if options.list {
        print(&mutants);
        return Ok(None);
    }
    let mut arguments = copy.arguments();
    arguments.extend(stages::BUILT.map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let suite = Suite::build(copy.folder(), &arguments, stages::PROGRAMS).await?;
    let subject = BrokenEngine {
        copy,
        suite,
        reached: Mutex::default(),
    };
    let report = crate::mutants::run(subject, mutants, options).await?;
    Ok(Some(report))
}

#[derive(Debug)]
struct BrokenEngine {
    copy: Copy,
    suite: Suite,
    /// The numbers of the mutants whose places a stage comes to.
    reached: Mutex<BTreeMap<String, BTreeSet<usize>>>,
}

impl Subject for BrokenEngine {
    fn suite(&self) -> &Suite {
        &self.suite
    }

    fn all_stages(&self, quick: bool) -> Vec<Stage> {
        stages::all(quick)
    }

    fn stages(&self, mutant: &Mutant, quick: bool) -> Vec<Stage> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let meets = |stage: &Stage| {
            let of_stage = reached.get(&stage.to_string());
            of_stage.is_some_and(|reached| reached.contains(&mutant.number))
        };
        let stages: Vec<Stage> = stages::all(quick).into_iter().filter(meets).collect();
        if stages.is_empty() {
            return stages;
        }
        let mut all = self.suite.finders(&mutant.file);
        all.extend(stages);
        all
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
                let file = folder.path().join("reached");
                environment.variables.push((REACHED, file.into()));
                environment.folder = Some(folder);
                return Ok(environment);
            }
        };
        environment.variables.push((CHOSEN, chosen));
        Ok(environment)
    }

    fn saw(&self, stage: &Stage, whole: &Environment) -> Result<(), String> {
        let file = whole
            .folder
            .as_ref()
            .map(|folder| folder.path().join("reached"));
        let file = file.ok_or("no folder for what was reached")?;
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{stage} comes to no place of the engine: {error}"))?;
        let numbers = text.lines().filter_map(|line| line.parse::<usize>().ok());
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached
            .entry(stage.to_string())
            .or_default()
            .extend(numbers);
        Ok(())
    }

    fn reason(&self, mutant: &Mutant) -> Option<&'static str> {
        survivors::reason(mutant)
    }
}

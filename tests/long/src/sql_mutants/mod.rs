//! Breaks PostgreSQL's functions in every small way.
//!
//! One build serves all mutants: a test's server gets its functions from the file named by
//! `LOCK_MIGRATION`.

mod mutant;
mod sql;
mod stages;
mod survivors;

use std::fs;

use tempfile::TempDir;

use crate::mutants::{
    Environment, Mutant, Options, Report, Scene, Stage, Subject, Suite, WAITING, asked_for, print,
    repository,
};

/// What is added to have nothing work.
const NOTHING: &str = "\nDROP SCHEMA lock_store CASCADE; CREATE SCHEMA lock_store;\n";

/// Tries the tests on each mutant that is asked for, or only prints them.
///
/// # Errors
///
/// If the migration can't be read, or the tests can't be built, are red without a mutant, or can't
/// tell when there are no functions.
pub async fn run(options: &Options) -> Result<Option<Report>, String> {
    let path = repository().join("lock-runtime/stores/postgres/src/migration.sql");
    let migration =
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (all, texts): (Vec<Mutant>, Vec<String>) =
        mutant::all(&migration).await?.into_iter().unzip();
    let (mutants, reasons) = asked_for(all, survivors::KNOWN, options)?;
    if options.list {
        print(&mutants);
        return Ok(None);
    }
    let names = ["conformance", "postgres"];
    let mut arguments = vec!["-p", "lock-tests"];
    arguments.extend(names.iter().flat_map(|name| ["--test", name]));
    let suite = Suite::build(&repository(), &arguments, &names, options.jobs * WAITING).await?;
    let subject = BrokenFunctions {
        migration,
        texts,
        suite,
        files: tempfile::tempdir().map_err(|error| error.to_string())?,
    };
    let report = crate::mutants::run(subject, mutants, reasons, options).await?;
    Ok(Some(report))
}

#[derive(Debug)]
struct BrokenFunctions {
    migration: String,
    /// For each mutant, the whole migration with the mistake.
    texts: Vec<String>,
    suite: Suite,
    /// Of new servers, which the tests copy: one test makes them.
    files: TempDir,
}

impl Subject for BrokenFunctions {
    fn suite(&self) -> &Suite {
        &self.suite
    }

    fn all_stages(&self, quick: bool) -> Vec<Stage> {
        stages::all(quick)
    }

    fn stages(&self, mutant: &Mutant, quick: bool) -> Vec<Stage> {
        stages::stages(&mutant.file, quick)
    }

    fn environment(&self, scene: Scene<'_>) -> Result<Environment, String> {
        let text = match scene {
            Scene::Whole => self.migration.clone(),
            Scene::One(mutant) => self.texts[mutant.number].clone(),
            Scene::Ruin => format!("{}{NOTHING}", self.migration),
        };
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path().join("migration.sql");
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Environment {
            variables: vec![
                ("LOCK_MIGRATION", path.into()),
                ("LOCK_TESTS_POSTGRES", self.files.path().into()),
            ],
            folder: Some(folder),
        })
    }
}

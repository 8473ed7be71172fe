//! Breaks the Lua scripts in every small way.
//!
//! One build serves all mutants: a test program takes its scripts from the folder named by
//! `LOCK_SCRIPTS`.

mod lua;
mod mutant;
mod stages;
mod survivors;

use std::fs;

use lock_testkit::LuaScripts;

use crate::mutants::{
    Environment, Mutant, Options, Report, Scene, Stage, Subject, Suite, WAITING, asked_for, print,
    repository,
};

/// What a script is that does nothing.
const NOTHING: &str = "do return redis.error_reply('ERR a script that does nothing') end\n";

/// Tries the tests on each mutant that is asked for, or only prints them.
///
/// # Errors
///
/// If the scripts can't be read, or the tests can't be built, are red without a mutant, or can't
/// tell scripts that do nothing.
pub async fn run(options: &Options) -> Result<Option<Report>, String> {
    let scripts = LuaScripts::in_repository();
    let all = mutant::all(&scripts).await?;
    let (all, texts): (Vec<Mutant>, Vec<String>) = all.into_iter().unzip();
    let (mutants, reasons) = asked_for(all, survivors::KNOWN, options)?;
    if options.list {
        print(&mutants);
        return Ok(None);
    }
    let names = [
        "conformance",
        "cost",
        "drift",
        "faults",
        "rate_model",
        "scripts",
        "shedlock",
        "timestamp",
        "topology",
        "versions",
    ];
    // Built together with the simulation, all of them take their scripts from a folder.
    let mut arguments = vec!["-p", "lock-tests", "-p", "lock-simulation"];
    arguments.extend(names.iter().flat_map(|name| ["--test", name]));
    let suite = Suite::build(&repository(), &arguments, &names, options.jobs * WAITING).await?;
    let subject = BrokenScripts {
        scripts,
        texts,
        suite,
    };
    let report = crate::mutants::run(subject, mutants, reasons, options).await?;
    Ok(Some(report))
}

#[derive(Debug)]
struct BrokenScripts {
    scripts: LuaScripts,
    /// For each mutant, its whole file with the mistake.
    texts: Vec<String>,
    suite: Suite,
}

impl Subject for BrokenScripts {
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
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (file, text) in self.scripts.files() {
            let text = match scene {
                Scene::Ruin => NOTHING,
                Scene::One(mutant) if mutant.file == *file => &self.texts[mutant.number],
                _ => text,
            };
            let path = LuaScripts::place(folder.path(), file);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            }
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(Environment {
            variables: vec![("LOCK_SCRIPTS", folder.path().into())],
            folder: Some(folder),
        })
    }
}

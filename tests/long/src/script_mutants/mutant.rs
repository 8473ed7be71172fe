//! All mutants.

use std::fmt;

use super::change::{Change, deletions, swaps};
use super::scripts::Scripts;
use lock_testkit::RedisServer;

/// One file of the scripts with one small mistake.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub(super) number: usize,
    pub(super) file: String,
    /// The first line of the mistake, from 1.
    pub(super) line: usize,
    /// The text before.
    pub(super) old: String,
    pub(super) what: String,
    /// The whole file with the mistake.
    pub(super) text: String,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            old,
            what,
            ..
        } = self;
        write!(f, "{file}:{line} {what}: {old}")
    }
}

/// The mutants that Lua compiles. The others would be found without a test.
pub(super) async fn all(scripts: &Scripts, only: &[String]) -> Result<Vec<Mutant>, String> {
    let server = RedisServer::start().await;
    let client = redis::Client::open(server.url()).map_err(|error| error.to_string())?;
    let mut lua = client.get_connection().map_err(|error| error.to_string())?;
    let mut compiles = |script: &str| -> Result<bool, String> {
        let loaded: redis::RedisResult<String> =
            redis::cmd("SCRIPT").arg("LOAD").arg(script).query(&mut lua);
        match loaded {
            Ok(_) => Ok(true),
            Err(error) if error.to_string().contains("compiling") => Ok(false),
            Err(error) => Err(format!("the server did not compile a script: {error}")),
        }
    };
    let mut mutants: Vec<Mutant> = Vec::new();
    for (file, text) in &scripts.files {
        let lines: Vec<&str> = text.lines().collect();
        for at in 0..lines.len() {
            let names = [file.clone(), format!("{file}:{}", at + 1)];
            if !only.is_empty() && !names.iter().any(|name| only.contains(name)) {
                continue;
            }
            let mut choices: Vec<Vec<Change>> = vec![deletions(&lines, at)];
            choices.extend(swaps(&lines, at));
            for change in choices {
                for change in change {
                    let text = change.applied(&lines);
                    if compiles(&scripts.assembled(file, &text))? {
                        mutants.push(Mutant {
                            number: mutants.len(),
                            file: file.clone(),
                            line: at + 1,
                            old: lines[at].trim().to_owned(),
                            what: change.what,
                            text,
                        });
                        break;
                    }
                }
            }
        }
    }
    if mutants.is_empty() {
        return Err("there are no such mutants".to_owned());
    }
    Ok(mutants)
}

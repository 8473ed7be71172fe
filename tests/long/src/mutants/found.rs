//! What an earlier run has found out about the mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Mutant;

/// Each mutant that was found, and each stage that did not find one.
///
/// In the file, if there is one, each has a line: `found`, the mutant and what found it, or
/// `green`, the mutant and the stage, apart by tabs. Its first line says of which state of the
/// repository that is: of another, tests may find more, or less.
#[derive(Debug, Default)]
pub(super) struct Found {
    file: Option<File>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by: BTreeMap<String, String>,
    green: BTreeSet<(String, String)>,
}

impl Found {
    /// Reads the file, or makes it.
    pub(super) fn read(path: &Path, state: &str) -> Result<Self, String> {
        let wrong = |error| format!("{}: {error}", path.display());
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .map_err(wrong)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(wrong)?;
        let mut known = Known::default();
        let mut lines = text.lines();
        match lines.next() {
            None => writeln!(file, "{state}").map_err(wrong)?,
            Some(of) if of == state => {}
            Some(_) => {
                let path = path.display();
                return Err(format!(
                    "{path} is of another state of the repository: tests may find more now, or \
                     less; delete it, or name another file"
                ));
            }
        }
        for line in lines {
            let mut words = line.splitn(3, '\t').map(str::to_owned);
            match (words.next().as_deref(), words.next(), words.next()) {
                (Some("found"), Some(mutant), Some(by)) => {
                    known.by.insert(mutant, by);
                }
                (Some("green"), Some(mutant), Some(stage)) => {
                    known.green.insert((mutant, stage));
                }
                _ => return Err(format!("{}: not of this program: {line}", path.display())),
            }
        }
        Ok(Self {
            file: Some(file),
            known: Mutex::new(known),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has found this one.
    pub(super) fn of(&self, mutant: &Mutant) -> Option<String> {
        self.known().by.get(&name(mutant)).cloned()
    }

    /// Whether this stage was tried on it, and did not find it.
    pub(super) fn was_green(&self, mutant: &Mutant, stage: &str) -> bool {
        let pair = (name(mutant), stage.to_owned());
        self.known().green.contains(&pair)
    }

    /// Notes that this has found it.
    pub(super) fn note(&self, mutant: &Mutant, by: &str) -> Result<(), String> {
        self.write("found", mutant, by)?;
        self.known().by.insert(name(mutant), by.to_owned());
        Ok(())
    }

    /// Notes that this stage did not find it.
    pub(super) fn note_green(&self, mutant: &Mutant, stage: &str) -> Result<(), String> {
        self.write("green", mutant, stage)?;
        let pair = (name(mutant), stage.to_owned());
        self.known().green.insert(pair);
        Ok(())
    }

    fn write(&self, what: &str, mutant: &Mutant, by: &str) -> Result<(), String> {
        let Some(mut file) = self.file.as_ref() else {
            return Ok(());
        };
        // One write, so that the lines of several tasks do not mix.
        let line = format!("{what}\t{}\t{by}\n", name(mutant));
        file.write_all(line.as_bytes())
            .map_err(|error| format!("what was found can't be noted: {error}"))
    }
}

/// Two on one line may look the same.
fn name(mutant: &Mutant) -> String {
    format!("{} {mutant}", mutant.number)
}

//! The mutants that an earlier run has found.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use super::{Mutant, Verdict};

/// A file with a line for each of them: the mutant, a tab, and what found it.
#[derive(Debug)]
pub(super) struct Found {
    file: File,
    by: BTreeMap<String, String>,
}

impl Found {
    /// Reads it, or makes it.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let wrong = |error| format!("{}: {error}", path.display());
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .map_err(wrong)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(wrong)?;
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let by = lines.map(|(mutant, by)| (mutant.to_owned(), by.to_owned()));
        Ok(Self {
            file,
            by: by.collect(),
        })
    }

    /// What has found this one.
    pub(super) fn of(&self, mutant: &Mutant) -> Option<String> {
        self.by.get(&name(mutant)).cloned()
    }

    /// Notes that this one was found, if it was.
    pub(super) fn note(&self, mutant: &Mutant, verdict: &Verdict) -> Result<(), String> {
        let by = match verdict {
            Verdict::Caught(test) => test.clone(),
            Verdict::Hung(stage) => format!("{stage}, which does not end"),
            Verdict::Survived | Verdict::Unmet => return Ok(()),
        };
        // One write, so that the lines of several tasks do not mix.
        let line = format!("{}\t{by}\n", name(mutant));
        (&self.file)
            .write_all(line.as_bytes())
            .map_err(|error| format!("what was found can't be noted: {error}"))
    }
}

/// Two on one line may look the same.
fn name(mutant: &Mutant) -> String {
    format!("{} {mutant}", mutant.number)
}

//! A copy of the repository in which a part of the library can be wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::find::{Found, places};
use super::{Target, stages, weave};
use crate::mutants::{Mutant, files, repository};

/// The compiler shows the mistakes of types first, and those of borrows when there are no others.
const ROUNDS: usize = 12;

/// One file of what is broken.
#[derive(Debug)]
struct File {
    /// Below the folder.
    name: String,
    text: String,
    found: Vec<Found>,
}

/// The copy, in the folder of cargo's results.
#[derive(Debug)]
pub(super) struct Copy {
    of: Target,
    folder: PathBuf,
    /// Of the copy's results. The programs that tests start have names without a hash, so that
    /// those of another build would take their place.
    target: PathBuf,
    files: Vec<File>,
    /// The numbers of the changes that compile.
    compiling: BTreeSet<usize>,
}

impl Copy {
    /// Copies what git knows or would add, as it is now, and finds out which changes compile.
    pub(super) fn make(of: Target) -> Result<Self, String> {
        let results = target()?;
        let mut copy = Self {
            of,
            folder: results.join("mutants"),
            target: results.join("mutants-built"),
            files: Vec::new(),
            compiling: BTreeSet::new(),
        };
        let listed = files()?;
        copy.forget_what_is_gone(&listed)?;
        for name in &listed {
            let from = repository().join(name);
            let bytes = fs::read(&from).map_err(told(&from))?;
            let below = name.strip_prefix(of.folder).filter(|rest| is_source(rest));
            if let Some(rest) = below {
                let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
                let first = copy.files.iter().map(|file| file.found.len()).sum();
                let found = places(&text, first).map_err(|error| format!("{name}: {error}"))?;
                copy.compiling
                    .extend(found.iter().map(|one| one.place.number));
                copy.files.push(File {
                    name: rest.trim_start_matches('/').to_owned(),
                    text,
                    found,
                });
            } else if name != of.root {
                copy.write(name, &bytes)?;
            }
        }
        let all = copy.compiling.len();
        let answers = weave::write_answers(all.max(1));
        copy.write(of.answers, answers.as_bytes())?;
        // What is woven in is not well written.
        let mut root = b"#![allow(warnings)]\n".to_vec();
        root.extend(fs::read(repository().join(of.root)).map_err(|error| error.to_string())?);
        root.extend(b"\nmod mutant;\n");
        copy.write(of.root, &root)?;
        for _ in 0..ROUNDS {
            copy.weave()?;
            let refused = copy.refused()?;
            if refused.is_empty() {
                let left = copy.compiling.len();
                eprintln!("{left} of {all} changes compile");
                return Ok(copy);
            }
            copy.compiling.retain(|number| !refused.contains(number));
        }
        Err("the compiler still refuses some of the changes".to_owned())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What cargo is told for each build.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--target-dir".to_owned(), self.target.display().to_string()];
        arguments.extend(stages::OPTIMISED.map(str::to_owned));
        arguments
    }

    /// The changes that compile.
    pub(super) fn mutants(&self) -> Result<Vec<Mutant>, String> {
        let mut mutants = Vec::new();
        for file in &self.files {
            let lines: Vec<&str> = file.text.lines().collect();
            for one in &file.found {
                let number = one.place.number;
                if self.compiling.contains(&number) {
                    let at = one.line - 1;
                    let old = lines.get(at).ok_or("a line beyond the end")?;
                    let mutant = Mutant::of(number, &file.name, at, old, one.what.clone());
                    mutants.push(mutant);
                }
            }
        }
        Ok(mutants)
    }

    fn weave(&self) -> Result<(), String> {
        for file in &self.files {
            let is_left = |one: &&Found| self.compiling.contains(&one.place.number);
            let left = file.found.iter().filter(is_left);
            let places: Vec<_> = left.map(|one| one.place.clone()).collect();
            let text = weave::woven(&file.text, &places);
            self.write(
                &format!("{}/{}", self.of.folder, file.name),
                text.as_bytes(),
            )?;
        }
        Ok(())
    }

    /// The numbers of changes that the compiler complains about.
    fn refused(&self) -> Result<BTreeSet<usize>, String> {
        let checked = Command::new(env!("CARGO"))
            .args(["check", "--message-format=json", "-p", self.of.package])
            .args(["--features", self.of.feature])
            .args(self.arguments())
            .current_dir(&self.folder)
            .stderr(Stdio::null())
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        let mut refused = BTreeSet::new();
        let mut last = String::new();
        for line in checked.stdout.split(|byte| *byte == b'\n') {
            let Ok(message) = serde_json::from_slice::<serde_json::Value>(line) else {
                continue;
            };
            let message = &message["message"];
            if message["level"] != "error" {
                continue;
            }
            message["rendered"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut last);
            for span in message["spans"].as_array().into_iter().flatten() {
                refused.extend(self.blamed(span)?);
            }
        }
        if refused.is_empty() && !checked.status.success() {
            return Err(format!("the copy does not compile: {last}"));
        }
        Ok(refused)
    }

    /// The changes in the lines of a complaint; if there are none, the last one before them.
    fn blamed(&self, span: &serde_json::Value) -> Result<Vec<usize>, String> {
        let name = span["file_name"].as_str().unwrap_or_default();
        if !name.starts_with(self.of.folder) {
            return Ok(Vec::new());
        }
        let path = self.folder.join(name);
        let text = fs::read_to_string(&path).map_err(told(&path))?;
        let line = |field: &str| {
            span[field]
                .as_u64()
                .and_then(|line| usize::try_from(line).ok())
        };
        let (Some(first), Some(last)) = (line("line_start"), line("line_end")) else {
            return Ok(Vec::new());
        };
        let lines: Vec<&str> = text.lines().collect();
        let within: Vec<usize> = lines[first - 1..last.min(first + 2)]
            .iter()
            .flat_map(|line| numbers(line))
            .collect();
        if !within.is_empty() {
            return Ok(within);
        }
        let before = lines[..first]
            .iter()
            .rev()
            .find_map(|line| numbers(line).pop());
        Ok(before.into_iter().collect())
    }

    /// Writes a file of the copy if it has changed, so that cargo builds what has changed.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.join(name);
        if fs::read(&path).is_ok_and(|written| written == bytes) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(told(folder))?;
        }
        fs::write(&path, bytes).map_err(told(&path))?;
        // `tests/run` and others are programs.
        let original = repository().join(name);
        if let Ok(original) = fs::metadata(&original) {
            fs::set_permissions(&path, original.permissions()).map_err(told(&path))?;
        }
        Ok(())
    }

    /// Files of an earlier copy may be found as tests.
    fn forget_what_is_gone(&self, listed: &[String]) -> Result<(), String> {
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.map_err(|error| error.to_string())?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(name) = path.strip_prefix(&self.folder)
                    && name != Path::new(self.of.answers)
                    && !listed.iter().any(|listed| Path::new(listed) == name)
                {
                    fs::remove_file(&path).map_err(told(&path))?;
                }
            }
        }
        Ok(())
    }
}

/// The folder of cargo's results, in which this program lies: `target/debug/mutants`.
fn target() -> Result<PathBuf, String> {
    let mut path = std::env::current_exe().map_err(|error| error.to_string())?;
    path.pop();
    path.pop();
    Ok(path)
}

fn is_source(name: &str) -> bool {
    name.ends_with(".rs") && !name.contains("/tests/") && !name.ends_with("/tests.rs")
}

/// The changes that a woven line asks about.
fn numbers(line: &str) -> Vec<usize> {
    let after = line.split("mutant::on(").skip(1);
    let number = |text: &str| text.split(')').next()?.parse().ok();
    after.filter_map(number).collect()
}

fn told(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

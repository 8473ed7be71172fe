//! The test programs, and which of their tests are tried on a script's mutants.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::repository;

/// Many times what they take on a machine under load. Only a test that hangs needs longer.
const LIMIT: Duration = Duration::from_secs(400);
/// Most tests wait most of the time.
const THREADS: &str = "3";
/// So many tests that found a mistake in a file are tried first on its next one.
const FIRST: usize = 6;

/// Tests that are run together. Stages that are quick or likely to find something come first.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    program: &'static str,
    /// Parts of the names of its tests. Without any, all tests.
    names: Vec<String>,
    /// The names are whole names.
    exact: bool,
    /// Tests that are left out.
    pub(super) without: Vec<String>,
}

impl Stage {
    fn new(program: &'static str, names: &[&str]) -> Self {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            program,
            names,
            exact: false,
            without: Vec::new(),
        }
    }

    /// One test of a stage.
    pub(super) fn only(&self, test: &str) -> Self {
        Self {
            exact: true,
            ..Self::new(self.program, &[test])
        }
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--test-threads".to_owned(), THREADS.to_owned()];
        arguments.extend(self.names.iter().cloned());
        if self.exact {
            arguments.push("--exact".to_owned());
        } else {
            arguments.extend(["--skip".to_owned(), "memory::".to_owned()]);
        }
        for test in &self.without {
            arguments.extend(["--skip".to_owned(), test.clone()]);
        }
        arguments
    }
}

/// The result of a stage.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Green,
    /// The first test that failed.
    Red(String),
    /// It did not end.
    Hung,
}

/// The test programs, built, and what is known about them.
#[derive(Debug)]
pub(super) struct Suite {
    programs: BTreeMap<&'static str, PathBuf>,
    /// The tests that found a mistake in a file, the latest last.
    finders: Mutex<BTreeMap<String, Vec<(Stage, String)>>>,
}

impl Suite {
    pub(super) async fn build() -> Result<Self, String> {
        let names = ["conformance", "drift", "faults", "rate_model"];
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            // Built together with the simulation, all of them take their scripts from a folder.
            .args([
                "test",
                "-p",
                "lock-tests",
                "-p",
                "lock-simulation",
                "--no-run",
            ])
            .arg("--message-format=json-render-diagnostics")
            .args(names.iter().flat_map(|name| ["--test", name]))
            .current_dir(repository())
            .stderr(Stdio::inherit());
        let built = cargo.output().await.map_err(|e| format!("cargo: {e}"))?;
        if !built.status.success() {
            return Err("the tests can't be built".to_owned());
        }
        let mut programs = BTreeMap::new();
        for line in built.stdout.split(|byte| *byte == b'\n') {
            let Ok(message) = serde_json::from_slice::<serde_json::Value>(line) else {
                continue;
            };
            for name in names {
                if let Some(path) = message["executable"].as_str()
                    && message["target"]["name"] == name
                {
                    programs.insert(name, PathBuf::from(path));
                }
            }
        }
        match names.iter().find(|name| !programs.contains_key(*name)) {
            None => Ok(Self {
                programs,
                finders: Mutex::default(),
            }),
            Some(name) => Err(format!("cargo did not tell where the tests {name} are")),
        }
    }

    /// What is run on a mutant of a file, one stage after the other. A test that does not run the
    /// script is not worth its time.
    pub(super) fn stages(&self, file: &str, quick: bool) -> Vec<Stage> {
        let mut stages = self.finders(file);
        let (first, longer) = match file {
            "rate.lua" => (
                vec![
                    Stage::new("rate_model", &[]),
                    Stage::new("faults", &["rates::a_bucket", "rates::a_clock"]),
                ],
                vec![
                    Stage::new("conformance", &["rates::"]),
                    Stage::new("drift", &[]),
                    Stage::new("faults", &["rates::"]),
                ],
            ),
            name if name.starts_with("latch") => (
                vec![
                    Stage::new("conformance", &["stored_latch::", "latch_verbs::"]),
                    Stage::new("faults", &["latch::a_key", "latch::a_full"]),
                ],
                vec![
                    Stage::new("conformance", &["latch"]),
                    Stage::new("drift", &[]),
                    Stage::new("faults", &["latch::"]),
                ],
            ),
            _ => (
                vec![
                    Stage::new("conformance", &["stored::"]),
                    Stage::new("drift", &[]),
                    Stage::new("conformance", &["verbs::", "shares::"]),
                ],
                vec![
                    Stage::new("conformance", &[]),
                    Stage::new(
                        "faults",
                        &[
                            "denied::",
                            "rights::",
                            "server::",
                            "rw_lock::",
                            "semaphore::",
                        ],
                    ),
                ],
            ),
        };
        stages.extend(first);
        if !quick {
            stages.extend(longer);
        }
        stages
    }

    /// Everything that is tried on any mutant.
    pub(super) fn all(&self, quick: bool) -> Vec<Stage> {
        let files = ["rate.lua", "latch.lua", "lib.lua"];
        files
            .iter()
            .flat_map(|file| self.stages(file, quick))
            .collect()
    }

    fn finders(&self, file: &str) -> Vec<Stage> {
        let finders = self.finders.lock().unwrap_or_else(PoisonError::into_inner);
        let of_file = finders.get(file).map_or(&[][..], Vec::as_slice);
        let mut stages: BTreeMap<&str, Stage> = BTreeMap::new();
        for (stage, test) in of_file.iter().rev().take(FIRST) {
            stages
                .entry(stage.program)
                .and_modify(|stage| stage.names.push(test.clone()))
                .or_insert_with(|| stage.only(test));
        }
        stages.into_values().collect()
    }

    pub(super) fn found(&self, file: &str, stage: &Stage, test: &str) {
        let mut finders = self.finders.lock().unwrap_or_else(PoisonError::into_inner);
        let of_file = finders.entry(file.to_owned()).or_default();
        of_file.retain(|(_, known)| known != test);
        of_file.push((stage.clone(), test.to_owned()));
    }

    /// Runs a stage with the scripts of a folder, until a test fails.
    pub(super) async fn run(&self, stage: &Stage, scripts: &Path) -> Result<Outcome, String> {
        let wrong = |error: std::io::Error| format!("the tests {}: {error}", stage.program);
        let temporary = tempfile::tempdir().map_err(wrong)?;
        let mut tests = Command::new(&self.programs[stage.program])
            .args(stage.arguments())
            .current_dir(repository().join("tests"))
            .env("LOCK_SCRIPTS", scripts)
            .env("RUST_BACKTRACE", OsStr::new("0"))
            // What a killed test leaves behind goes with this folder.
            .env("TMPDIR", temporary.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(wrong)?;
        let _group = Group(tests.id());
        let mut lines = BufReader::new(tests.stdout.take().ok_or("no output")?).lines();
        let until_red = async {
            while let Some(line) = lines.next_line().await? {
                // `test rates::redis::a_rate_is_kept ... FAILED`
                if let Some(test) = line.strip_suffix(" ... FAILED") {
                    let test = test.trim_start_matches("test ").trim_end();
                    return Ok(Outcome::Red(test.to_owned()));
                }
            }
            Ok(match tests.wait().await?.success() {
                true => Outcome::Green,
                false => Outcome::Red("the whole program".to_owned()),
            })
        };
        match tokio::time::timeout(LIMIT, until_red).await {
            Ok(outcome) => outcome.map_err(wrong),
            Err(_) => Ok(Outcome::Hung),
        }
    }
}

/// A test program and the servers that it started.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0.and_then(|id| i32::try_from(id).ok()) {
            // Fails only if nothing of it is left.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

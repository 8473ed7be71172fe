//! The test programs, and the stages in which their tests are tried.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Environment;

/// Many times what a stage takes on a machine under load. Only a test that hangs needs longer.
const LIMIT: Duration = Duration::from_secs(400);
/// At most this many tests that found a mistake in a file are tried first on its next one.
const FIRST: usize = 6;

/// Tests that are run together. Stages that are quick or likely to find something come first.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    program: &'static str,
    /// Parts of the names of its tests. Without any, all tests.
    names: Vec<String>,
    /// The names are whole names.
    exact: bool,
    /// Parts of the names of tests that the stage leaves out.
    skipped: &'static [&'static str],
    /// How many tests run at a time. Most tests wait most of the time.
    threads: usize,
    /// Each test in a process of its own: in one, some wait for each other.
    apart: bool,
    /// Variables of the stage's own.
    variables: &'static [(&'static str, &'static str)],
    /// The stage that these tests are a part of.
    whole: Option<String>,
    /// Tests that are left out from now on.
    pub(super) without: Vec<String>,
}

impl Stage {
    pub(crate) fn new(program: &'static str, names: &[&str]) -> Self {
        Self {
            program,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            exact: false,
            skipped: &[],
            threads: 3,
            apart: false,
            variables: &[],
            whole: None,
            without: Vec::new(),
        }
    }

    pub(crate) fn skipping(mut self, skipped: &'static [&'static str]) -> Self {
        self.skipped = skipped;
        self
    }

    pub(crate) fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    pub(crate) fn apart(mut self) -> Self {
        self.apart = true;
        self
    }

    pub(crate) fn with(mut self, variables: &'static [(&'static str, &'static str)]) -> Self {
        self.variables = variables;
        self
    }

    /// One test of a stage.
    pub(super) fn only(&self, test: &str) -> Self {
        self.just(vec![test.to_owned()])
    }

    /// Some tests of a stage, in this order if each has a process of its own.
    pub(crate) fn just(&self, tests: Vec<String>) -> Self {
        Self {
            names: tests,
            exact: true,
            whole: Some(self.whole()),
            without: Vec::new(),
            ..self.clone()
        }
    }

    /// What the stage is called of which these tests are a part.
    pub(super) fn whole(&self) -> String {
        self.whole.clone().unwrap_or_else(|| self.to_string())
    }

    /// The tests of this stage are told apart.
    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--test-threads".to_owned(), self.threads.to_string()];
        arguments.extend(self.names.iter().cloned());
        if self.exact {
            arguments.push("--exact".to_owned());
        } else {
            let skip = |name: &&str| ["--skip".to_owned(), (*name).to_owned()];
            arguments.extend(self.skipped.iter().flat_map(skip));
        }
        for test in &self.without {
            arguments.extend(["--skip".to_owned(), test.clone()]);
        }
        arguments
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program)?;
        self.names
            .iter()
            .try_for_each(|name| write!(f, " {name}"))?;
        let mut variables = self.variables.iter();
        variables.try_for_each(|(name, value)| write!(f, " {name}={value}"))
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

/// A test program and the folder in which it runs.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    folder: PathBuf,
}

/// The test programs, built, and what is known about them.
#[derive(Debug)]
pub(crate) struct Suite {
    programs: BTreeMap<&'static str, Program>,
    /// The tests that found a mistake in a file, the latest last.
    finders: Mutex<BTreeMap<String, Vec<(Stage, String)>>>,
    /// This many programs run at a time that do more than wait. On a machine under too much load
    /// tests would seem to hang.
    busy: Semaphore,
    /// This many run at a time that have one test, which waits most of the time.
    waiting: Semaphore,
    /// How long stages may take.
    limits: Mutex<BTreeMap<String, Duration>>,
    /// How long tests took that had a process of their own, with nothing broken.
    times: Mutex<BTreeMap<(&'static str, String), Duration>>,
}

/// The test that has a process of its own, in its environment.
pub(crate) const TEST: &str = "LOCK_MUTANTS_TEST";

impl Suite {
    /// Builds the programs of these names: `cargo test --no-run` with these arguments. At
    /// most `waiting` tests that wait run at a time.
    pub(crate) async fn build(
        repository: &Path,
        arguments: &[&str],
        names: &[&'static str],
        waiting: usize,
    ) -> Result<Self, String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["test", "--no-run"])
            .arg("--message-format=json-render-diagnostics")
            .args(arguments)
            .current_dir(repository)
            .stdout(Stdio::piped());
        let wrong = |error| format!("cargo: {error}");
        let building = cargo.spawn().map_err(wrong)?;
        let built = building.wait_with_output().await.map_err(wrong)?;
        if !built.status.success() {
            return Err("the tests can't be built".to_owned());
        }
        let mut programs = BTreeMap::new();
        for line in built.stdout.split(|byte| *byte == b'\n') {
            let Ok(message) = serde_json::from_slice::<serde_json::Value>(line) else {
                continue;
            };
            let is = |name: &&&str| message["target"]["name"] == **name;
            if let Some(name) = names.iter().find(is)
                && let Some(path) = message["executable"].as_str()
                && let Some(manifest) = message["manifest_path"].as_str()
            {
                let folder = Path::new(manifest).parent().unwrap_or(Path::new("/"));
                let program = Program {
                    path: path.into(),
                    folder: folder.into(),
                };
                programs.insert(*name, program);
            }
        }
        match names.iter().find(|name| !programs.contains_key(*name)) {
            None => Ok(Self {
                programs,
                finders: Mutex::default(),
                busy: Semaphore::new(processors() * 5),
                waiting: Semaphore::new(waiting),
                limits: Mutex::default(),
                times: Mutex::default(),
            }),
            Some(name) => Err(format!("cargo did not tell where the tests {name} are")),
        }
    }

    /// The tests that found the latest mistakes in a file.
    pub(super) fn finders(&self, file: &str) -> Vec<Stage> {
        let finders = self.finders.lock().unwrap_or_else(PoisonError::into_inner);
        let of_file = finders.get(file).map_or(&[][..], Vec::as_slice);
        let mut stages: BTreeMap<String, Stage> = BTreeMap::new();
        for (stage, test) in of_file.iter().rev().take(FIRST) {
            stages
                .entry(stage.whole())
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

    /// A stage that took so long with nothing broken is taken to hang after many times that.
    pub(super) fn took(&self, stage: &Stage, time: Duration) {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = (time * 20 + Duration::from_secs(5)).min(LIMIT);
        limits.insert(stage.to_string(), limit);
    }

    fn limit(&self, stage: &Stage) -> Duration {
        if let ([test], true) = (&stage.names[..], stage.exact)
            && let Some(time) = self.time(stage, test)
        {
            return (time * 10 + Duration::from_secs(10)).min(LIMIT);
        }
        // Some tests of a stage take no longer than all of them.
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.get(&stage.whole()).copied().unwrap_or(LIMIT)
    }

    /// How long a test took with nothing broken, if it had a process of its own.
    pub(crate) fn time(&self, stage: &Stage, test: &str) -> Option<Duration> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.get(&(stage.program, test.to_owned())).copied()
    }

    /// Runs a stage until a test fails.
    pub(super) async fn run(
        &self,
        stage: &Stage,
        environment: &Environment,
    ) -> Result<Outcome, String> {
        if !stage.apart {
            let _slot = slot(&self.busy).await?;
            return self.run_together(stage, environment).await;
        }
        let tests = match stage.exact {
            true => stage.names.clone(),
            false => self.tests(stage).await?,
        };
        let one = |test: String| async move {
            let alone = stage.only(&test);
            let _slot = slot(&self.waiting).await?;
            let began = Instant::now();
            let outcome = self.run_together(&alone, environment).await?;
            if outcome == Outcome::Green {
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                times
                    .entry((stage.program, test.clone()))
                    .or_insert_with(|| began.elapsed());
            }
            Ok::<_, String>(match outcome {
                Outcome::Green => Outcome::Green,
                Outcome::Hung | Outcome::Red(_) => Outcome::Red(test),
            })
        };
        let without = |test: &String| !stage.without.contains(test);
        let left = tests.into_iter().filter(without);
        let mut results = stream::iter(left).map(one).buffer_unordered(stage.threads);
        while let Some(result) = results.next().await {
            match result? {
                Outcome::Green => {}
                bad => return Ok(bad),
            }
        }
        Ok(Outcome::Green)
    }

    /// The names of a stage's tests.
    async fn tests(&self, stage: &Stage) -> Result<Vec<String>, String> {
        let program = &self.programs[stage.program];
        let listed = Command::new(&program.path)
            .arg("--list")
            .args(stage.arguments())
            .current_dir(&program.folder)
            .output()
            .await
            .map_err(|error| format!("the tests {}: {error}", stage.program))?;
        let text = String::from_utf8_lossy(&listed.stdout);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    async fn run_together(
        &self,
        stage: &Stage,
        environment: &Environment,
    ) -> Result<Outcome, String> {
        let wrong = |error: std::io::Error| format!("the tests {}: {error}", stage.program);
        let temporary = temporary_folder().map_err(wrong)?;
        let program = &self.programs[stage.program];
        let alone = stage.names.first().filter(|_| stage.apart);
        let mut tests = Command::new(&program.path)
            .args(stage.arguments())
            .current_dir(&program.folder)
            .envs(stage.variables.iter().copied())
            .envs(
                environment
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .envs(alone.map(|test| (TEST, test)))
            .env("RUST_BACKTRACE", "0")
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
        match tokio::time::timeout(self.limit(stage), until_red).await {
            Ok(outcome) => outcome.map_err(wrong),
            Err(_) => Ok(Outcome::Hung),
        }
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

async fn slot(of: &Semaphore) -> Result<SemaphorePermit<'_>, String> {
    of.acquire().await.map_err(|error| error.to_string())
}

/// A folder in memory where there is one: a server writes much that nobody reads.
fn temporary_folder() -> std::io::Result<TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
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

//! One process of a test program: one test, or all of them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::process::{self, Limit, Running};
use super::programs::Program;

/// One test, or a whole program.
#[derive(Debug)]
pub(crate) struct Trial<'p> {
    pub(crate) program: &'p Program,
    /// The test's name. Without one, all tests that the filters let through.
    test: Option<String>,
    filters: &'p [String],
}

/// The result of a trial.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How many tests passed.
    pub(crate) tests: u64,
    /// Its output, if it failed.
    pub(crate) failure: Option<String>,
}

/// The tests of a program that the filters let through.
pub(crate) fn of<'p>(
    program: &'p Program,
    filters: &'p [String],
) -> Result<Vec<Trial<'p>>, String> {
    let mut list = program.command();
    let list = list.args(["--list", "--format", "terse"]).args(filters);
    let list = list
        .output()
        .map_err(|error| format!("{}: {error}", program.name()))?;
    if !list.status.success() {
        let error = String::from_utf8_lossy(&list.stderr);
        return Err(format!("{} --list: {error}", program.name()));
    }
    let trial = |test| Trial {
        program,
        test,
        filters,
    };
    let list = String::from_utf8_lossy(&list.stdout);
    let tests: Vec<&str> = list
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    Ok(match (program.is_whole(), tests.is_empty()) {
        (true, false) => vec![trial(None)],
        _ => tests
            .into_iter()
            .map(|test| trial(Some(test.to_owned())))
            .collect(),
    })
}

impl Trial<'_> {
    pub(crate) fn name(&self) -> String {
        match &self.test {
            Some(test) => format!("{}::{test}", self.program.name()),
            None => self.program.name(),
        }
    }

    fn command(&self, times: &Path) -> Command {
        let mut command = self.program.command();
        match &self.test {
            Some(test) => command.args(["--exact", test]),
            None => command.args(self.filters).env("TEST_TIMES", times),
        };
        command
    }

    /// Runs it, and records in a file how long each test took. No test may take longer than the
    /// limit.
    pub(crate) fn run(&self, times: &Path, limit: Duration, waiting: &Running) -> Outcome {
        let began = Instant::now();
        let counted = match self.test {
            Some(_) if self.program.is_computing() => Limit::Yielding(2 * limit, waiting),
            Some(_) => Limit::InAll(limit),
            None => Limit::EachLine(limit),
        };
        let output = match process::run(&mut self.command(times), counted) {
            Ok(output) => output,
            Err(error) => return Outcome::failed(error.to_string()),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let tests = passed(&text);
        if tests == 0 || !output.status.is_some_and(|status| status.success()) {
            let errors = String::from_utf8_lossy(&output.stderr);
            let end = output
                .status
                .map_or_else(|| counted.to_string(), |status| status.to_string());
            let mut failed = Outcome::failed(format!("{text}\n{errors}\n{}: {end}", self.name()));
            failed.tests = tests;
            return failed;
        }
        let noted = self.test.is_none() || note(times, &self.name(), began).is_ok();
        Outcome {
            tests,
            failure: (!noted).then(|| format!("its time could not be written to {times:?}")),
        }
    }
}

impl Outcome {
    fn failed(output: String) -> Self {
        Self {
            tests: 0,
            failure: Some(output),
        }
    }
}

/// `test result: ok. 1 passed; 0 failed; …`
fn passed(output: &str) -> u64 {
    let results = output
        .lines()
        .filter(|line| line.starts_with("test result: "));
    results
        .filter_map(|line| {
            line.split_once(" passed")?
                .0
                .rsplit(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .sum()
}

fn note(file: &Path, name: &str, began: Instant) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(file)?;
    let line = format!("{:.3} {name}\n", began.elapsed().as_secs_f64());
    file.write_all(line.as_bytes())
}

//! Code with one small mistake: how many such mistakes do the tests find?
//!
//! What is broken, and how a test program meets it, is for a `Subject` to say. The rest is the same
//! for all: first the tests must be green with nothing broken, and red with everything broken.
//! Otherwise the rest would show nothing. Then each mutant meets one stage of tests after the
//! other, until one is red.

mod found;
mod reasons;
mod report;
mod suite;
mod trial;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use self::found::Found;
pub(crate) use self::reasons::{Known, Reasons};
pub use self::report::Report;
pub(crate) use self::suite::{Stage, Suite, TEST};
pub use self::trial::Verdict;

/// One small mistake.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub(crate) number: usize,
    pub(crate) file: String,
    /// The first line of the mistake, from 1.
    pub(crate) line: usize,
    /// The text before.
    pub(crate) old: String,
    pub(crate) what: String,
}

impl Mutant {
    /// One that begins in the line with this index, which is `old`.
    pub(crate) fn of(number: usize, file: &str, at: usize, old: &str, what: String) -> Self {
        Self {
            number,
            file: file.to_owned(),
            line: at + 1,
            old: old.trim().to_owned(),
            what,
        }
    }
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

/// What a test program is to meet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scene<'a> {
    /// Nothing is broken.
    Whole,
    /// One thing is.
    One(&'a Mutant),
    /// Everything is.
    Ruin,
}

/// The environment in which a test program meets a scene.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Files that the variables name.
    pub(crate) folder: Option<TempDir>,
}

/// This many tests run at a time for each mutant that is tried.
pub(crate) const WAITING: usize = 2;

/// What is broken, and the tests that are tried on it.
pub(crate) trait Subject: fmt::Debug + Send + Sync + 'static {
    fn suite(&self) -> &Suite;
    /// Everything that is tried on any mutant.
    fn all_stages(&self, quick: bool) -> Vec<Stage>;
    /// What is tried on one, in this order.
    fn stages(&self, mutant: &Mutant, quick: bool) -> Vec<Stage>;
    fn environment(&self, scene: Scene<'_>) -> Result<Environment, String>;
    /// A stage was green in an environment in which nothing is broken.
    fn saw(&self, _: &Stage, _: &Environment) -> Result<(), String> {
        Ok(())
    }
}

/// The mutants that are asked for, and why no test can be expected to find some of them.
pub(crate) fn asked_for(
    mut all: Vec<Mutant>,
    known: &[Known],
    options: &Options,
) -> Result<(Vec<Mutant>, Reasons), String> {
    let reasons = Reasons::of(known, &all)?;
    all.retain(|mutant| options.asks_for(mutant));
    match all.is_empty() {
        true => Err("there are no such mutants".to_owned()),
        false => Ok((all, reasons)),
    }
}

/// Tries the tests on each of the mutants, this many at a time.
pub(crate) async fn run(
    subject: impl Subject,
    mutants: Vec<Mutant>,
    reasons: Reasons,
    options: &Options,
) -> Result<Report, String> {
    let (subject, quick) = (Arc::new(subject), options.quick);
    trial::can_tell(&*subject, quick).await?;
    let found = match &options.found {
        Some(path) => Found::read(path, &state()?)?,
        None => Found::default(),
    };
    let found = Arc::new(found);
    let mut tried: Vec<(Mutant, Verdict)> = Vec::new();
    let mut left = VecDeque::new();
    for mutant in mutants {
        match found.of(&mutant) {
            Some(by) => tried.push((mutant, Verdict::Found(by))),
            None => left.push_back(mutant),
        }
    }
    // The quick stages are tried on all of them before the next ones on the few that are left.
    for round in 0.. {
        let mut having = VecDeque::new();
        for mutant in left {
            // If its survival is explained, it counts as one that was not found. The longer tests
            // are not worth their time.
            let quick = quick || reasons.why(&mutant).is_some();
            match subject.stages(&mutant, quick).into_iter().nth(round) {
                Some(stage) => having.push_back((mutant, stage)),
                None if round == 0 => tried.push((mutant, Verdict::Unmet)),
                None => tried.push((mutant, Verdict::Survived)),
            }
        }
        if having.is_empty() {
            break;
        }
        eprintln!("round {round}: {} are left", having.len());
        let now = Round {
            subject: subject.clone(),
            found: found.clone(),
            left: Mutex::new(having),
        };
        left = now.run(options.jobs, &mut tried).await?;
    }
    tried.sort_by_key(|(mutant, _)| mutant.number);
    Ok(Report::new(tried, &reasons))
}

/// One stage for each mutant that is left.
struct Round<S> {
    subject: Arc<S>,
    found: Arc<Found>,
    left: Mutex<VecDeque<(Mutant, Stage)>>,
}

impl<S: Subject> Round<S> {
    /// Those that were not found. The others are added to those that were tried.
    async fn run(
        self,
        jobs: usize,
        tried: &mut Vec<(Mutant, Verdict)>,
    ) -> Result<VecDeque<Mutant>, String> {
        let (round, mut workers) = (Arc::new(self), JoinSet::new());
        for _ in 0..jobs {
            workers.spawn(round.clone().work());
        }
        let mut left = Vec::new();
        while let Some(worker) = workers.join_next().await {
            let of_worker: Result<_, String> = worker.map_err(|error| error.to_string())?;
            for (mutant, by) in of_worker? {
                match by {
                    Some(by) => tried.push((mutant, Verdict::Found(by))),
                    None => left.push(mutant),
                }
            }
        }
        left.sort_by_key(|mutant| mutant.number);
        Ok(left.into())
    }

    /// Tries one after the other.
    async fn work(self: Arc<Self>) -> Result<Vec<(Mutant, Option<String>)>, String> {
        let mut tried = Vec::new();
        loop {
            let next = {
                let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
                left.pop_front()
            };
            let Some((mutant, stage)) = next else {
                return Ok(tried);
            };
            let by = trial::of(&*self.subject, &mutant, stage, &self.found).await?;
            if let Some(by) = &by {
                eprintln!("{mutant}: found by {by}");
                self.found.note(&mutant, by)?;
            }
            tried.push((mutant, by));
        }
    }
}

/// What is broken.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// The Lua scripts.
    Scripts,
    /// The functions in SQL.
    Sql,
    /// What happens between a request and a store.
    Engine,
    /// The connection to Redis, with its parser.
    Connection,
}

/// The words of the command line.
#[derive(Debug)]
pub struct Options {
    /// What is broken.
    pub what: What,
    /// How many mutants are tried at a time.
    pub(crate) jobs: usize,
    /// Files, or lines of them (`FILE:LINE`). Without any, all.
    only: Vec<String>,
    /// The longer tests, which find a few more, are left out.
    quick: bool,
    /// What this file says was found out is not tried again, and what is found out is added: a run
    /// of hours may be cut short. It is of one state of the repository only.
    found: Option<PathBuf>,
    /// The mutants are told, and no test is run.
    pub(crate) list: bool,
}

const USAGE: &str = "usage: mutants scripts|sql|engine|connection [--jobs N] \
                     [--only FILE[:LINE]]... [--quick] [--found FILE] [--list]";

impl Options {
    /// Those that the program was started with.
    ///
    /// # Errors
    ///
    /// How it is used, if a word is not known.
    pub fn read() -> Result<Self, String> {
        let mut words = std::env::args().skip(1);
        let mut options = Self {
            what: match words.next().as_deref() {
                Some("scripts") => What::Scripts,
                Some("sql") => What::Sql,
                Some("engine") => What::Engine,
                Some("connection") => What::Connection,
                _ => return Err(USAGE.to_owned()),
            },
            jobs: 1,
            only: Vec::new(),
            quick: false,
            found: None,
            list: false,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => options.list = true,
                "--quick" => options.quick = true,
                "--found" => options.found = Some(words.next().ok_or(USAGE)?.into()),
                "--only" => options.only.push(words.next().ok_or(USAGE)?),
                "--jobs" => {
                    let jobs = words.next().and_then(|number| number.parse().ok());
                    options.jobs = jobs.filter(|jobs| *jobs > 0).ok_or(USAGE)?;
                }
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }

    fn asks_for(&self, Mutant { file, line, .. }: &Mutant) -> bool {
        let names = [file.clone(), format!("{file}:{line}")];
        self.only.is_empty() || names.iter().any(|name| self.only.contains(name))
    }
}

/// Runs to the end, or until a signal ends it, and with it everything that was started.
///
/// # Errors
///
/// Those of the work, and a signal.
pub async fn until_signalled<T>(
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let mut terminated =
        signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    tokio::select! {
        result = work => result,
        _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
        _ = terminated.recv() => Err("terminated".to_owned()),
    }
}

/// Prints mutants, one a line.
pub(crate) fn print(mutants: &[Mutant]) {
    for mutant in mutants {
        println!("{mutant}");
    }
    println!("{} mutants", mutants.len());
}

/// What the files of the repository are now, but for its pages.
fn state() -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    for name in files()? {
        if name.ends_with(".md") {
            continue;
        }
        let path = repository().join(&name);
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        (name, bytes).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// The files that git knows or would add, from the repository's folder.
pub(crate) fn files() -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(repository())
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !listed.status.success() {
        return Err("git does not list the files: is this a checkout?".to_owned());
    }
    let listed = String::from_utf8(listed.stdout).map_err(|error| error.to_string())?;
    let names = listed.split_terminator('\0').map(str::to_owned);
    Ok(names
        .filter(|name| repository().join(name).is_file())
        .collect())
}

/// The repository's folder.
pub(crate) fn repository() -> PathBuf {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.pop();
    folder.pop();
    folder
}

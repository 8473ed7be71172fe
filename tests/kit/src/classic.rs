//! Other libraries that keep a lock as a plain text with an end (`SET NX PX`), each in a process of
//! its own, beside this one on one key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lock_runtime::LockClient;

use crate::packages::{folder_once, left_out, python_with, succeeds};
use crate::{ChildProcess, RedisServer, monotonic_nanos};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/classic");
const KEY: &str = "hot";
const TASKS: usize = 2;
/// How long each turn lasts.
const STAYS: Duration = Duration::from_millis(2);

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassicLibrary {
    /// Python's redis-py.
    RedisPy,
    /// Go's redsync.
    Redsync,
    /// Go's bsm/redislock.
    Redislock,
    /// Node's redlock.
    NodeRedlock,
    /// Rust's rslock.
    Rslock,
}

/// What each side had.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    /// The number of this library's turns.
    pub ours: u32,
    /// The number of the other library's.
    pub theirs: u32,
    /// How long this library kept the key from the other.
    pub ours_for: Duration,
    /// How long the key was left to the other.
    pub theirs_for: Duration,
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ours, theirs, .. } = self;
        write!(
            f,
            "{ours} turns of ours in {:?}, {theirs} of theirs in {:?}",
            self.ours_for, self.theirs_for
        )
    }
}

/// The share of the side that had less.
fn smaller(ours: f64, theirs: f64) -> f64 {
    ours.min(theirs) / (ours + theirs).max(f64::MIN_POSITIVE)
}

impl Shares {
    /// Of the turns, those of the side that had fewer.
    #[must_use]
    pub fn of_turns(self) -> f64 {
        smaller(self.ours.into(), self.theirs.into())
    }

    /// Of the time, that of the side that had less. On a busy machine a process has fewer turns in
    /// its time than it could have; how long it could have them is for the locks to decide.
    #[must_use]
    pub fn of_time(self) -> f64 {
        smaller(self.ours_for.as_secs_f64(), self.theirs_for.as_secs_f64())
    }

    /// Of turns in their order.
    fn of(turns: &[Turn]) -> Self {
        let mut shares = Self::default();
        for pair in turns.windows(2) {
            let [turn, next] = pair else { continue };
            // Between two of one side, the key is that side's: the other did not get it.
            let until = match turn.is_ours && !next.is_ours {
                true => turn.to,
                false => next.from,
            };
            let lasted = Duration::from_nanos(until - turn.from);
            let (number, time) = match turn.is_ours {
                true => (&mut shares.ours, &mut shares.ours_for),
                false => (&mut shares.theirs, &mut shares.theirs_for),
            };
            (*number, *time) = (*number + 1, *time + lasted);
            shares.theirs_for += Duration::from_nanos(next.from - until);
        }
        shares
    }
}

/// From when to when, in nanoseconds of the machine's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    from: u64,
    to: u64,
    is_ours: bool,
}

/// A program, and its first arguments.
type Launch = (PathBuf, Vec<String>);

impl ClassicLibrary {
    /// Its program, made in a folder below `target`. `None` where its language is not there, or its
    /// packages can't be had.
    fn launch(self, target: &Path) -> Option<Launch> {
        match self {
            Self::RedisPy => {
                let python = python_with(target, &["redis==8.1.0"])?;
                Some((python, vec![format!("{FIXTURES}/redis_py.py")]))
            }
            Self::Redsync => Some((go(target)?, vec!["redsync".to_owned()])),
            Self::Redislock => Some((go(target)?, vec!["redislock".to_owned()])),
            Self::NodeRedlock => {
                let folder = target.join("classic-node");
                let is_made = folder_once(&folder, |folder| {
                    let copied = std::fs::create_dir_all(folder).is_ok()
                        && ["package.json", "worker.js"].into_iter().all(|file| {
                            let from = format!("{FIXTURES}/node/{file}");
                            std::fs::copy(from, folder.join(file)).is_ok()
                        });
                    let folder = folder.to_string_lossy();
                    let install = ["install", "--silent", "--no-audit", "--prefix", &folder];
                    copied && succeeds("npm", &install)
                });
                let worker = folder.join("worker.js").display().to_string();
                is_made.then(|| (PathBuf::from("node"), vec![worker]))
            }
            Self::Rslock => {
                let folder = target.join("classic-rust");
                let manifest = format!("{FIXTURES}/rust/Cargo.toml");
                let output = folder.to_string_lossy();
                let build = [
                    "build",
                    "--manifest-path",
                    &manifest,
                    "--target-dir",
                    &output,
                ];
                let is_made = succeeds(env!("CARGO"), &build);
                is_made.then(|| (folder.join("debug/classic"), Vec::new()))
            }
        }
    }

    /// Two tasks of the library and one of each of `ours` take one lock over and over, for so long,
    /// with the library's own pauses between two tries or with this one. `ours` share the key
    /// names; a client that is there twice has two tasks, which hand the lock off to each other.
    /// `None` where the library can't be had, which is printed.
    ///
    /// # Panics
    /// If two have had the lock at once, or a side can't go on.
    pub async fn beside(
        self,
        ours: &[LockClient],
        server: &RedisServer,
        lasts: Duration,
        pause: Option<Duration>,
        target: &Path,
    ) -> Option<Shares> {
        let target = target.to_owned();
        let launch = tokio::task::spawn_blocking(move || self.launch(&target));
        let Some((program, mut arguments)) = launch.await.expect("no panic") else {
            left_out(&format!("{self:?}: its language or packages can't be had"));
            return None;
        };
        let pause = pause.map(|pause| pause.as_millis().to_string());
        arguments.extend([
            server.port().to_string(),
            KEY.to_owned(),
            TASKS.to_string(),
            lasts.as_millis().to_string(),
            pause.unwrap_or_else(|| "default".to_owned()),
        ]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut theirs = ChildProcess::start(program, &arguments);
        theirs.wait_for("ready").await;
        theirs.send("go");
        let mut turns = contend(ours, lasts).await;
        theirs
            .wait_within(lasts + Duration::from_secs(60), "contended")
            .await;
        for event in theirs.take_events() {
            if let Some(turn) = event.text.strip_prefix("turn ") {
                let mut numbers = turn.split(' ').skip(1).map(|number| number.parse());
                let mut next = || numbers.next().and_then(Result::ok).expect("a time");
                let (from, to) = (next(), next());
                turns.push(Turn {
                    from,
                    to,
                    is_ours: false,
                });
            }
        }
        turns.sort_unstable();
        for pair in turns.windows(2) {
            assert!(pair[0].to <= pair[1].from, "two holders: {pair:?}");
        }
        Some(Shares::of(&turns))
    }
}

fn go(target: &Path) -> Option<PathBuf> {
    let program = target.join("classic-go");
    let source = format!("{FIXTURES}/go");
    let output = program.to_string_lossy();
    let is_made = succeeds("go", &["build", "-C", &source, "-o", &output, "."]);
    is_made.then_some(program)
}

/// The turns of this side.
async fn contend(clients: &[LockClient], lasts: Duration) -> Vec<Turn> {
    let until = Instant::now() + lasts;
    let mut tasks = tokio::task::JoinSet::new();
    for client in clients {
        let request = client.lock(KEY).wait(lasts + Duration::from_secs(30));
        tasks.spawn(async move {
            let mut turns = Vec::new();
            while Instant::now() < until {
                let guard = request.clone().acquire().await.expect("the lock");
                let from = monotonic_nanos();
                tokio::time::sleep(STAYS).await;
                turns.push(Turn {
                    from,
                    to: monotonic_nanos(),
                    is_ours: true,
                });
                guard.release().await.expect("a release");
            }
            turns
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

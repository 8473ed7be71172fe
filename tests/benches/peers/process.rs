//! One process of a library under test, and what the system knows of it.

use std::iter::Sum;
use std::ops::Sub;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// More than any round takes.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    id: u32,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

/// What processes have used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// User and system.
    pub(crate) cpu_nanos: f64,
    /// The system's part, to a hundredth of a second.
    pub(crate) system_nanos: f64,
    /// How often its threads went to sleep.
    pub(crate) sleeps: f64,
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            cpu_nanos: sum.cpu_nanos + one.cpu_nanos,
            system_nanos: sum.system_nanos + one.system_nanos,
            sleeps: sum.sleeps + one.sleeps,
        })
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            cpu_nanos: self.cpu_nanos - before.cpu_nanos,
            system_nanos: self.system_nanos - before.system_nanos,
            sleeps: self.sleeps - before.sleeps,
        }
    }
}

impl Process {
    /// Returns when the process is ready to work.
    pub(crate) async fn start(words: &[String]) -> Result<Self, String> {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", words[0]))?;
        let mut process = Self {
            id: child.id().ok_or("it has ended")?,
            input: child.stdin.take().ok_or("no standard input")?,
            output: BufReader::new(child.stdout.take().ok_or("no standard output")?).lines(),
            _child: child,
        };
        let first = process.line().await?;
        match first.as_str() {
            "ready" => Ok(process),
            other => Err(format!("it said {other:?} and not that it is ready")),
        }
    }

    pub(crate) async fn say(&mut self, line: &str) -> Result<(), String> {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .map_err(|error| format!("it no longer listens: {error}"))
    }

    pub(crate) async fn line(&mut self) -> Result<String, String> {
        timeout(ANSWER_LIMIT, self.output.next_line())
            .await
            .map_err(|_| format!("it said nothing for {ANSWER_LIMIT:?}"))?
            .map_err(|error| format!("its output can't be read: {error}"))?
            .ok_or_else(|| "it ended".to_owned())
    }

    /// The text after `word` in the next line of the process.
    pub(crate) async fn after(&mut self, word: &str) -> Result<f64, String> {
        let line = self.line().await?;
        line.strip_prefix(word)
            .and_then(|rest| rest.trim().parse().ok())
            .ok_or_else(|| format!("it said {line:?} and not `{word} NUMBER`"))
    }

    pub(crate) fn usage(&self) -> Usage {
        usage(self.id)
    }
}

/// The usage of a process by its id. Zero where the system has no `/proc`.
pub(crate) fn usage(process: u32) -> Usage {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let mut sum = Usage {
        system_nanos: system_nanos(&stat).unwrap_or(0.0),
        ..Usage::default()
    };
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return sum;
    };
    for thread in threads.flatten() {
        let text = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let times = text("schedstat");
        let cpu = times
            .split(' ')
            .next()
            .and_then(|nanos| nanos.parse::<f64>().ok());
        sum.cpu_nanos += cpu.unwrap_or(0.0);
        let sleeps = text("status").lines().find_map(|line| {
            line.strip_prefix("voluntary_ctxt_switches:")?
                .trim()
                .parse::<f64>()
                .ok()
        });
        sum.sleeps += sleeps.unwrap_or(0.0);
    }
    sum
}

/// From `/proc/ID/stat`, which counts hundredths of a second.
fn system_nanos(stat: &str) -> Option<f64> {
    // The program's name, in parentheses, can contain anything. System time is the 13th field after
    // it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let hundredths: f64 = fields.split(' ').nth(12)?.parse().ok()?;
    Some(hundredths * 1e7)
}

//! One process of a library under test, and what the system knows of it.

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

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_nanos: f64,
    /// How often its threads went to sleep.
    pub(crate) sleeps: f64,
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
    let mut sum = Usage::default();
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

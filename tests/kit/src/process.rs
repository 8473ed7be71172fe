//! Another process of the service under test.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::eventually;
use crate::os_process::OsProcess;

/// Generous, as in [`eventually`](crate::eventually).
const LIMIT: Duration = Duration::from_secs(30);

/// A worker process that reads commands as lines and answers with events as lines.
///
/// An integration test starts the worker of this package with
/// `ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[])`. Dropping it kills the process,
/// also a paused one. Should the test process itself be killed, the worker's input ends, and with
/// it the worker.
#[derive(Debug)]
pub struct ChildProcess {
    process: OsProcess,
    input: Option<ChildStdin>,
    events: mpsc::UnboundedReceiver<(Instant, String)>,
    /// Events that arrived while others were waited for.
    passed_over: VecDeque<(Instant, String)>,
}

/// A line that a worker wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What follows the prefix that was waited for, trimmed.
    pub text: String,
    /// When it arrived in the test's process.
    pub at: Instant,
}

impl ChildProcess {
    /// Starts `program`. What it writes to its standard error goes to the test's.
    pub fn start(program: impl AsRef<OsStr>, arguments: &[&str]) -> Self {
        let mut process = OsProcess::spawn(
            Command::new(program)
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        );
        let input = process.child().stdin.take();
        let output = process.child().stdout.take().expect("it is piped");
        let (sender, events) = mpsc::unbounded_channel();
        // A thread, so that an event has its own time even while the test's runtime is busy.
        // It ends with the process, whose output then ends.
        std::thread::Builder::new()
            .name("worker-output".to_owned())
            .spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send((Instant::now(), line)).is_err() {
                        return;
                    }
                }
            })
            .expect("a thread can be started");
        Self {
            process,
            input,
            events,
            passed_over: VecDeque::new(),
        }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends one line.
    ///
    /// # Panics
    ///
    /// When the process no longer reads.
    pub fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is still open");
        // In one piece: the worker must not see half a command if the test is slow.
        let written = input.write_all(format!("{line}\n").as_bytes());
        written.unwrap_or_else(|error| panic!("the worker cannot be told {line:?}: {error}"));
    }

    /// Waits for an event that begins with `prefix`. Events that were passed over before count,
    /// the oldest first; each event is given out once.
    ///
    /// # Panics
    ///
    /// When the process ends or 30 s pass without one; the message shows what came instead.
    pub async fn wait_for(&mut self, prefix: &str) -> Event {
        self.wait_within(LIMIT, prefix).await
    }

    /// Like [`wait_for`](Self::wait_for), with a limit of its own.
    ///
    /// # Panics
    ///
    /// When the process ends or the limit passes without one.
    pub async fn wait_within(&mut self, limit: Duration, prefix: &str) -> Event {
        let earlier = self.passed_over.iter();
        let position = earlier
            .map(|(_, line)| line)
            .position(|line| line.starts_with(prefix));
        if let Some((at, line)) = position.and_then(|found| self.passed_over.remove(found)) {
            return event(at, &line, prefix);
        }
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.events.recv()).await {
                Ok(Some((at, line))) if line.starts_with(prefix) => {
                    return event(at, &line, prefix);
                }
                Ok(Some(other)) => self.passed_over.push_back(other),
                Ok(None) => panic!(
                    "the worker ended without {prefix:?}; it said {:?}",
                    self.passed_over
                ),
                Err(_) => panic!(
                    "no {prefix:?} from the worker within {limit:?}; it said {:?}",
                    self.passed_over
                ),
            }
        }
    }

    /// The events that have arrived and were not waited for. Does not wait.
    pub fn take_events(&mut self) -> Vec<Event> {
        while let Ok(other) = self.events.try_recv() {
            self.passed_over.push_back(other);
        }
        let events = self.passed_over.drain(..);
        events.map(|(at, line)| event(at, &line, "")).collect()
    }

    /// Ends the worker's input, which asks it to end, and waits until it has; returns all events
    /// not waited for.
    pub async fn finish(mut self) -> (ExitStatus, Vec<Event>) {
        drop(self.input.take());
        // Its output ends with it, so all events are there then.
        let all = async {
            while let Some(other) = self.events.recv().await {
                self.passed_over.push_back(other);
            }
        };
        tokio::time::timeout(LIMIT, all)
            .await
            .expect("the worker ends within 30 s of its input");
        let mut status = None;
        eventually("the worker ends after its input", async || {
            status = self.process.exit_status();
            status.is_some()
        })
        .await;
        let events = self.take_events();
        (status.expect("it has ended"), events)
    }

    /// SIGKILL; returns when the process is gone. Harmless when it is already.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// SIGSTOP; returns when the process stands still.
    pub fn pause(&mut self) {
        self.process.pause();
    }

    /// SIGCONT after [`pause`](Self::pause).
    pub fn resume(&mut self) {
        self.process.resume();
    }
}

fn event(at: Instant, line: &str, prefix: &str) -> Event {
    let text = line[prefix.len()..].trim().to_owned();
    Event { text, at }
}

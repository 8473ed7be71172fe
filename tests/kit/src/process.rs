//! Another process of the service under test.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::OsProcess;
use crate::eventually;

/// Generous, as in [`eventually`](crate::eventually).
const LIMIT: Duration = Duration::from_secs(30);

/// A worker process. It reads commands as lines and answers with events as lines.
///
/// An integration test starts the worker of this package with
/// `ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[])`. Dropping it kills the process,
/// even if it is paused. If the test process itself is killed, the worker's input ends, and so does
/// the worker.
#[derive(Debug)]
pub struct ChildProcess {
    process: OsProcess,
    input: Option<ChildStdin>,
    events: mpsc::UnboundedReceiver<(Instant, String)>,
    /// Events that arrived while the test waited for others.
    unread: VecDeque<(Instant, String)>,
}

/// A line that a worker wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The text after the prefix that the test waited for, trimmed.
    pub text: String,
    /// When it arrived in the test's process.
    pub at: Instant,
}

impl ChildProcess {
    /// Starts `program`. Its standard error goes to that of the test.
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
        // A thread, so that events get correct times even while the test's runtime is busy. It ends
        // with the process, which ends the output.
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
            unread: VecDeque::new(),
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
        // In one write: a slow test must not make the worker see half a command.
        let written = input.write_all(format!("{line}\n").as_bytes());
        written.unwrap_or_else(|error| panic!("the worker cannot be told {line:?}: {error}"));
    }

    /// Waits for an event that begins with `prefix`. Events not read earlier count too, the
    /// oldest first. Each event is returned once.
    ///
    /// # Panics
    ///
    /// When the process ends or 30 s pass without such an event. The message shows the other
    /// events.
    pub async fn wait_for(&mut self, prefix: &str) -> Event {
        self.wait_within(LIMIT, prefix).await
    }

    /// Like [`wait_for`](Self::wait_for), with another limit.
    ///
    /// # Panics
    ///
    /// When the process ends or the limit passes without such an event.
    pub async fn wait_within(&mut self, limit: Duration, prefix: &str) -> Event {
        let earlier = self.unread.iter();
        let position = earlier
            .map(|(_, line)| line)
            .position(|line| line.starts_with(prefix));
        if let Some((at, line)) = position.and_then(|found| self.unread.remove(found)) {
            return event(at, &line, prefix);
        }
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.events.recv()).await {
                Ok(Some((at, line))) if line.starts_with(prefix) => {
                    return event(at, &line, prefix);
                }
                Ok(Some(other)) => self.unread.push_back(other),
                Ok(None) => panic!(
                    "the worker ended without {prefix:?}; it said {:?}",
                    self.unread
                ),
                Err(_) => panic!(
                    "no {prefix:?} from the worker within {limit:?}; it said {:?}",
                    self.unread
                ),
            }
        }
    }

    /// The events that have arrived and were not waited for. Does not block.
    pub fn take_events(&mut self) -> Vec<Event> {
        while let Ok(other) = self.events.try_recv() {
            self.unread.push_back(other);
        }
        let events = self.unread.drain(..);
        events.map(|(at, line)| event(at, &line, "")).collect()
    }

    /// Closes the worker's input, which asks it to end, and waits for its end. Returns all events
    /// not waited for.
    pub async fn finish(mut self) -> (ExitStatus, Vec<Event>) {
        drop(self.input.take());
        // The output ends with the process, so all events have arrived then.
        let all = async {
            while let Some(other) = self.events.recv().await {
                self.unread.push_back(other);
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

    /// SIGKILL. Returns when the process is gone. Harmless if it already is.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// SIGSTOP. Returns when the process stands still.
    pub fn pause(&mut self) {
        self.process.pause();
    }

    /// SIGCONT, after [`pause`](Self::pause).
    pub fn resume(&mut self) {
        self.process.resume();
    }
}

fn event(at: Instant, line: &str, prefix: &str) -> Event {
    let text = line[prefix.len()..].trim().to_owned();
    Event { text, at }
}

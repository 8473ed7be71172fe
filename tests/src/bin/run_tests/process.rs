//! A process that is ended if it does not end by itself.

use std::fmt;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long to wait for the rest of an ended process's output. A process that it started and left
/// may hold the pipes open for ever.
const REST: Duration = Duration::from_secs(1);

/// What a process wrote.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// `None`: it did not end within the limit, and was ended with all that it had started.
    pub(crate) status: Option<ExitStatus>,
}

/// A limit of time for a process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit<'a> {
    /// For all of it.
    InAll(Duration),
    /// From each line to the next, since a process of many tests writes one for each.
    EachLine(Duration),
    /// As `InAll`, from when those that it yields to have all ended.
    Yielding(Duration, &'a Running),
}

/// How many are running that come first.
pub(crate) type Running = AtomicUsize;

/// What is said of a process that was ended.
impl fmt::Display for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InAll(time) => write!(f, "did not end within {} s", time.as_secs()),
            Self::EachLine(time) => write!(f, "ended no test within {} s", time.as_secs()),
            Self::Yielding(time, _) => write!(
                f,
                "did not end within {} s in which none came first",
                time.as_secs()
            ),
        }
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

type Part = (Stream, Vec<u8>);

/// Runs a process to its end, or to the limit.
pub(crate) fn run(command: &mut Command, limit: Limit<'_>) -> io::Result<Output> {
    let command = command.stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (sender, parts) = channel();
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        forward(stdout, Stream::Stdout, sender.clone());
        forward(stderr, Stream::Stderr, sender);
    }
    let mut output = Output::default();
    if output.read(&parts, limit) {
        output.status = Some(child.wait()?);
    } else {
        end(&mut child)?;
        output.read(&parts, Limit::InAll(REST));
    }
    Ok(output)
}

fn forward(mut from: impl Read + Send + 'static, stream: Stream, to: Sender<Part>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send((stream, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
}

impl Output {
    /// True if it was read to its end, false at the limit.
    fn read(&mut self, parts: &Receiver<Part>, limit: Limit<'_>) -> bool {
        let (Limit::InAll(time) | Limit::EachLine(time) | Limit::Yielding(time, _)) = limit;
        let mut until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match parts.recv_timeout(left) {
                Ok((Stream::Stdout, part)) => {
                    self.stdout.extend(part);
                    if matches!(limit, Limit::EachLine(_)) {
                        until = Instant::now() + time;
                    }
                }
                Ok((Stream::Stderr, part)) => self.stderr.extend(part),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => match limit {
                    Limit::Yielding(_, others) if others.load(Ordering::Relaxed) > 0 => {
                        until = Instant::now() + time;
                    }
                    _ => return false,
                },
            }
        }
    }
}

/// Ends a process and those that it started, such as servers, which would stay.
///
/// They are in the driver's own process group, so that one Ctrl-C ends everything.
fn end(child: &mut Child) -> io::Result<()> {
    let started = descendants(child.id())?;
    child.kill()?;
    child.wait()?;
    if !started.is_empty() {
        let words = started.iter().map(u32::to_string);
        // Fails if one of them has ended meanwhile.
        Command::new("kill").arg("-KILL").args(words).output()?;
    }
    Ok(())
}

fn descendants(process: u32) -> io::Result<Vec<u32>> {
    let listed = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid="])
        .output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let pairs: Vec<(u32, u32)> = listed
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(str::parse);
            Some((words.next()?.ok()?, words.next()?.ok()?))
        })
        .collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = pairs.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(child, _)| child));
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

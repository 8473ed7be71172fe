//! [`Round`]: the processes of one measurement, which begin together.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::tally::Tally;
use crate::worker::Order;

/// Processes that are ready.
#[derive(Debug)]
pub(crate) struct Round(Vec<Child>);

impl Round {
    /// Returns when all of them are connected. `program` are the words before their order.
    pub(crate) fn start(program: &[String], order: &Order, processes: usize) -> Self {
        let start = || {
            let mut child = Command::new(&program[0])
                .args(&program[1..])
                .arg(order.write())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the program starts");
            assert_eq!(line_of(&mut child), "ready");
            child
        };
        Self(std::iter::repeat_with(start).take(processes).collect())
    }

    /// Lets them work, and returns what they did together.
    pub(crate) fn run(mut self) -> Tally {
        for child in &mut self.0 {
            let mut input = child.stdin.take().expect("it was piped");
            writeln!(input, "go").expect("it reads");
        }
        let tallies = self.0.iter_mut().map(|child| {
            let line = line_of(child);
            let ended = child.wait().expect("it ends");
            assert!(ended.success(), "{ended}");
            Tally::read(&line).expect("a tally")
        });
        tallies.reduce(Tally::with).unwrap_or_default()
    }
}

/// A line is all that it writes until it is asked for the next.
fn line_of(child: &mut Child) -> String {
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("it was piped");
    BufReader::with_capacity(1, output)
        .read_line(&mut line)
        .expect("it writes");
    line.trim_end().to_owned()
}

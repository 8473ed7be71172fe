//! What the user sees: the money before and after, and whether every task got its turn.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// What one task did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sender {
    pub(crate) sent: u32,
    slowest: Duration,
}

/// A day at the bank.
#[derive(Debug)]
pub(crate) struct Day {
    pub(crate) tasks: u32,
    pub(crate) accounts: usize,
    pub(crate) locked: bool,
    /// The tasks that ended.
    pub(crate) senders: Vec<Sender>,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

impl Sender {
    pub(crate) fn note(&mut self, took: Duration) {
        self.sent += 1;
        self.slowest = self.slowest.max(took);
    }
}

impl Day {
    /// Prints the table and what it means.
    pub(crate) fn report(&self) -> ExitCode {
        let sent: u32 = self.senders.iter().map(|sender| sender.sent).sum();
        let fewest = self.senders.iter().map(|sender| sender.sent).min();
        let slowest = self.senders.iter().map(|sender| sender.slowest).max();
        let stuck = self.tasks as usize - self.senders.len();
        let lock = if self.locked { "with" } else { "WITHOUT" };
        say(&format!(
            "{} tasks, {} accounts, {lock} the locks\n",
            self.tasks, self.accounts
        ));
        for (name, value) in [
            ("turns", sent.to_string()),
            ("fewest of a task", fewest.unwrap_or_default().to_string()),
            (
                "slowest turn",
                format!("{:.0?}", slowest.unwrap_or_default()),
            ),
            ("stuck", stuck.to_string()),
            ("money before", self.before.to_string()),
            ("money after", self.after.to_string()),
        ] {
            say(&format!("  {name:<18}{value:>8}"));
        }
        let more = self.after - self.before;
        if self.locked && (more != 0 || stuck > 0) {
            eprintln!("\nThe locks did not do their work.");
            return ExitCode::FAILURE;
        }
        say(&match more {
            0 if self.locked => {
                "\nNo money appeared, none vanished, and no task got stuck.".to_owned()
            }
            0 => "\nNothing went wrong this time: too few were at one account at once. \
                  Try more --tasks."
                .to_owned(),
            more => format!(
                "\n{} of money {}: two read the same balance, and the later one wrote over \
                 what the other had written. This is what the locks prevent.",
                more.abs(),
                if more > 0 { "appeared" } else { "vanished" }
            ),
        });
        ExitCode::SUCCESS
    }
}

/// Prints a line. Its reader may be gone (`| head`); that does not change the exit status.
fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

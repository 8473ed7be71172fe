//! Which process ran the job at which tick, and whether that was right.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::process::ExitCode;

use crate::args::Args;
use crate::process::Struck;

/// The ticks that are watched, and what each process did, in the order of the reports.
#[derive(Debug)]
pub(crate) struct Nights {
    clocks: [i64; 3],
    every: i64,
    ticks: BTreeMap<i64, Vec<(usize, Struck)>>,
}

/// The numbers in the table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    ran: usize,
    skipped: usize,
    run_twice: usize,
    missed: usize,
    unheard: usize,
}

impl Nights {
    /// Ticks have numbers, counted from 1970.
    pub(crate) fn watch(clocks: [i64; 3], every: i64, first: i64, ticks: i64) -> Self {
        Self {
            clocks,
            every,
            ticks: (first..first + ticks)
                .map(|tick| (tick, Vec::new()))
                .collect(),
        }
    }

    /// Prints a line as soon as all processes have reported a tick. Ticks that are not watched do
    /// not count.
    pub(crate) fn note(&mut self, process: usize, struck: Struck) {
        if let Some(told) = self.ticks.get_mut(&struck.tick) {
            told.push((process, struck));
            if told.len() == self.clocks.len() {
                say(&self.line(struck.tick));
            }
        }
    }

    pub(crate) fn are_over(&self) -> bool {
        let expected = self.clocks.len();
        self.ticks.values().all(|told| told.len() >= expected)
    }

    /// Prints the table and what it means.
    pub(crate) fn report(&self, args: &Args) -> ExitCode {
        for (tick, told) in &self.ticks {
            if told.len() < self.clocks.len() {
                say(&self.line(*tick));
            }
        }
        let count = self.count();
        let Count {
            run_twice, missed, ..
        } = count;
        say("");
        for (name, number) in [
            ("ticks", self.ticks.len()),
            ("ran", count.ran),
            ("skipped", count.skipped),
            ("run twice", run_twice),
            ("missed", missed),
        ] {
            say(&format!("  {name:<12}{number:>4}"));
        }
        let apart = args.apart().as_secs();
        if run_twice + missed + count.unheard == 0 {
            say(&format!(
                "\nEvery tick was run by exactly one process, \
                 although the clocks are {apart} s apart."
            ));
            ExitCode::SUCCESS
        } else if args.no_hold && run_twice > 0 {
            say("\nThe lock was free again when the next clock struck. \
                 This is what hold_at_least prevents.");
            ExitCode::SUCCESS
        } else {
            eprintln!(
                "\nNot every tick was run once: {run_twice} were run twice, {missed} by nobody, \
                 and {} times a process told nothing.",
                count.unheard
            );
            ExitCode::FAILURE
        }
    }

    fn line(&self, tick: i64) -> String {
        let time = tick * self.every;
        let (hours, minutes, seconds) = (time / 3600 % 24, time / 60 % 60, time % 60);
        let mut line = format!("{hours:02}:{minutes:02}:{seconds:02} UTC");
        for (did, ran) in [("ran", true), ("skipped", false)] {
            let mut who = Vec::new();
            for (process, struck) in &self.ticks[&tick] {
                if struck.ran == ran {
                    let late = struck.late as f64 / 1000.0;
                    who.push(format!("process {process} at {late:+.1} s"));
                }
            }
            if who.is_empty() {
                who.push("nobody".to_owned());
            }
            line += &format!("  {did}: {}", who.join(", "));
        }
        line
    }

    fn count(&self) -> Count {
        let mut count = Count::default();
        for told in self.ticks.values() {
            let ran = told.iter().filter(|(_, struck)| struck.ran).count();
            count.ran += ran;
            count.skipped += told.len() - ran;
            count.run_twice += usize::from(ran > 1);
            count.missed += usize::from(ran == 0);
            count.unheard += self.clocks.len().saturating_sub(told.len());
        }
        count
    }
}

/// Prints a line. Its reader may be gone (`| head`); that does not change the exit status.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_run_twice_and_one_not_run_are_seen() {
        let mut nights = Nights::watch([0, 1, -1], 6, 100, 3);
        for (process, tick, ran) in [
            (1, 99, true),
            (2, 100, true),
            (1, 100, false),
            (3, 100, true),
            (2, 101, true),
            (1, 102, false),
        ] {
            nights.note(process, Struck { tick, late: 0, ran });
        }
        let expected = Count {
            ran: 3,
            skipped: 2,
            run_twice: 1,
            missed: 1,
            unheard: 4,
        };
        assert_eq!(nights.count(), expected);
        assert!(!nights.are_over());
    }
}

//! What the user sees: a progress bar, and then what happened to the items.

use std::io::{Write, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Args;
use crate::event::Event;

/// The live bar. It goes to stderr, and draws nothing unless that is a terminal. The lines around
/// it are always printed.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

/// What happened to the buyers.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sold: u32,
    pub(crate) sold_out: u32,
    pub(crate) interrupted: u32,
    waits: Vec<Duration>,
}

/// A finished sale.
#[derive(Debug)]
pub(crate) struct Sale {
    pub(crate) buyers: u32,
    pub(crate) items: u32,
    pub(crate) locked: bool,
    pub(crate) tally: Tally,
    /// The inventory's number at the end.
    pub(crate) left: u32,
    pub(crate) duration: Duration,
    /// Buyers who got no answer because their process was killed.
    pub(crate) unfinished: u32,
}

/// The result of a sale, as the exit status shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Right,
    WrongWithoutLock,
    WrongUnderLock,
}

impl Progress {
    /// Announces the sale, and draws the bar.
    pub(crate) fn start(args: &Args, place: &str) -> Self {
        let lock = if args.no_lock { "WITHOUT" } else { "with" };
        say(&format!(
            "{} buyers, {} items, {place}, {lock} the lock",
            args.buyers, args.items
        ));
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} buyers served, {msg} sold");
        let bar = ProgressBar::new(args.buyers.into()).with_message("0");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.tick();
        Self(bar)
    }

    pub(crate) fn show(&self, tally: &Tally) {
        self.0.set_position(tally.answered().into());
        self.0.set_message(tally.sold.to_string());
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.0.suspend(|| say(line));
    }

    pub(crate) fn finish(&self) {
        self.0.abandon();
    }
}

impl Tally {
    pub(crate) fn count(&mut self, event: Event) {
        match event {
            Event::Entered { waited, .. } => self.waits.push(waited),
            Event::Hanging => {}
            Event::Sold => self.sold += 1,
            Event::SoldOut => self.sold_out += 1,
            Event::Interrupted => self.interrupted += 1,
        }
    }

    pub(crate) fn answered(&self) -> u32 {
        self.sold + self.sold_out + self.interrupted
    }

    fn median_and_worst_wait(&self) -> Option<(Duration, Duration)> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        Some((*waits.get(waits.len() / 2)?, *waits.last()?))
    }
}

impl Sale {
    /// Prints the table and what it means.
    pub(crate) fn report(&self) -> Outcome {
        say(&self.table());
        let faults = self.faults();
        if self.locked {
            if faults.is_empty() {
                say(&self.account());
                return Outcome::Right;
            }
            eprintln!("The lock did not do its work: {}.", faults.join("; "));
            return Outcome::WrongUnderLock;
        }
        if faults.is_empty() {
            say("Nothing went wrong this time: too few buyers came at once. Try more of them.");
            return Outcome::Right;
        }
        say(&format!(
            "Without the lock {}: buyers read the same number, and each wrote it back less one. \
             This is what the lock prevents.",
            faults.join("; ")
        ));
        Outcome::WrongWithoutLock
    }

    fn table(&self) -> String {
        let mut rows = vec![
            ("sold", self.tally.sold.to_string()),
            ("left", self.left.to_string()),
            ("oversold", self.oversold().to_string()),
        ];
        if self.tally.interrupted > 0 {
            rows.push(("interrupted", self.tally.interrupted.to_string()));
        }
        if self.unfinished > 0 {
            rows.push(("unfinished", self.unfinished.to_string()));
        }
        rows.push(("duration", shown(self.duration)));
        if let Some((median, worst)) = self.tally.median_and_worst_wait() {
            rows.push(("median wait", shown(median)));
            rows.push(("worst wait", shown(worst)));
        }
        let mut table = String::new();
        for (name, value) in rows {
            table += &format!("\n  {name:<12}{value:>10}");
        }
        table + "\n"
    }

    fn account(&self) -> String {
        let (sold, left, items) = (self.tally.sold, self.left, self.items);
        let mut account = String::new();
        if self.unfinished > 0 {
            account += &format!(
                "{} buyers got no answer, because their process was killed; all others did.\n",
                self.unfinished
            );
        }
        if self.tally.interrupted > 0 {
            account += &format!(
                "{} buyers were stopped half way, because the lock was lost; \
                 each may have taken an item.\n",
                self.tally.interrupted
            );
        }
        if sold + left == items {
            account += "No item was sold twice and none was lost: ";
        } else {
            account += "No item was sold twice: ";
        }
        account + &format!("{sold} sold + {left} left = {} of {items}.", sold + left)
    }

    /// Items that were sold although there were no more.
    fn oversold(&self) -> u32 {
        self.tally.sold.saturating_sub(self.items)
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let (sold, items) = (self.tally.sold, self.items);
        if self.oversold() > 0 {
            faults.push(format!("{sold} items were sold out of {items}"));
        }
        // An interrupted buyer may have taken an item without reporting it.
        let accounted = u64::from(sold) + u64::from(self.left);
        let unknown = u64::from(self.tally.interrupted);
        if accounted > items.into() {
            faults.push(format!(
                "the inventory still shows {} after {sold} sales, so {} of them are missing in it",
                self.left,
                accounted - u64::from(items)
            ));
        } else if accounted + unknown < items.into() {
            faults.push(format!(
                "{} items were lost: neither sold nor left",
                u64::from(items) - accounted - unknown
            ));
        }
        let served = self.tally.answered() + self.unfinished;
        if served != self.buyers {
            faults.push(format!("{served} of {} buyers are known of", self.buyers));
        }
        if self.tally.sold_out > 0 && self.left > 0 {
            faults.push(format!(
                "{} buyers were told that nothing is left, and {} are",
                self.tally.sold_out, self.left
            ));
        }
        faults
    }
}

/// Prints a line. Its reader may be gone (`| head`); that changes neither the sale nor its exit
/// status.
fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

/// Short enough for a column, and no finer than people can tell apart.
pub(crate) fn shown(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
    } else {
        format!("{:.2} s", duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(sold: u32, sold_out: u32, left: u32) -> Sale {
        Sale {
            buyers: 20,
            items: 10,
            locked: true,
            tally: Tally {
                sold,
                sold_out,
                ..Tally::default()
            },
            left,
            duration: Duration::ZERO,
            unfinished: 0,
        }
    }

    #[test]
    fn a_right_sale_has_no_faults() {
        assert!(sale(10, 10, 0).faults().is_empty());
        let crashed = Sale {
            unfinished: 12,
            ..sale(8, 0, 2)
        };
        assert!(crashed.faults().is_empty());
    }

    #[test]
    fn every_way_to_sell_wrongly_is_a_fault() {
        for (what, wrong) in [
            ("oversold", sale(11, 9, 0)),
            ("item lost", sale(9, 11, 0)),
            ("sale not written down", sale(10, 10, 1)),
            ("buyer forgotten", sale(10, 9, 0)),
            ("turned away too early", sale(9, 11, 1)),
        ] {
            assert!(!wrong.faults().is_empty(), "{what}");
        }
    }

    #[test]
    fn an_interrupted_buyer_may_have_taken_an_item() {
        let mut interrupted = sale(9, 10, 0);
        interrupted.tally.interrupted = 1;
        assert!(interrupted.faults().is_empty());
        interrupted.left = 2;
        assert!(!interrupted.faults().is_empty());
    }

    #[test]
    fn median_and_worst_are_those_of_the_sorted_waits() {
        let mut tally = Tally::default();
        assert_eq!(tally.median_and_worst_wait(), None);
        tally.waits = [5, 1, 9].map(Duration::from_secs).into();
        let expected = (Duration::from_secs(5), Duration::from_secs(9));
        assert_eq!(tally.median_and_worst_wait(), Some(expected));
    }
}

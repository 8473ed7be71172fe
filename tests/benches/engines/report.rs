//! [`Table`]: medians, and ratios to what is written by hand.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::tally::Tally;

/// All measurements, by engine, workload and what was measured.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: BTreeMap<(String, String), BTreeMap<String, Vec<Tally>>>,
}

impl Table {
    pub(crate) fn note(&mut self, engine: &str, workload: &str, library: &str, tally: Tally) {
        let row = self.rows.entry((engine.to_owned(), workload.to_owned()));
        let cell = row.or_default().entry(library.to_owned());
        cell.or_default().push(tally);
    }

    /// What was measured of these engines. `None`: nothing.
    pub(crate) fn text(&self, engines: &[&str], rounds: u32, seconds: u64) -> Option<String> {
        let is_one = |(engine, _): &&(String, String)| engines.contains(&&**engine);
        self.rows.keys().find(is_one)?;
        let mut text = format!(
            "Medians of {rounds} rounds of {seconds} s each, in turns; {}.\n\n\
             | engine | workload | | cycles/s | ours ÷ this | fewest and most of a task |\n\
             |---|---|---|--:|--:|--:|\n",
            machine()
        );
        let rows = self.rows.iter().filter(|(row, _)| is_one(row));
        for ((engine, workload), libraries) in rows {
            let ours = libraries.get("ours").map_or(&[][..], Vec::as_slice);
            for (library, tallies) in libraries {
                let ratio = match &**library {
                    "ours" => "1".to_owned(),
                    _ => format!("**{:.2}**", median(ratios(ours, tallies))),
                };
                let rate = median(tallies.iter().map(Tally::rate).collect());
                let (fewest, most) = (
                    share(tallies, |one| one.fewest),
                    share(tallies, |one| one.most),
                );
                let numbers = format!("{rate:.0} | {ratio} | {fewest:.0} to {most:.0}");
                let _ = writeln!(text, "| {engine} | `{workload}` | {library} | {numbers} |");
            }
        }
        Some(text)
    }
}

/// Each round's own.
fn ratios(ours: &[Tally], others: &[Tally]) -> Vec<f64> {
    let pairs = ours.iter().zip(others);
    pairs
        .map(|(one, other)| one.rate() / other.rate())
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "a count of a few seconds")]
fn share(tallies: &[Tally], of: impl Fn(&Tally) -> u64) -> f64 {
    median(tallies.iter().map(|tally| of(tally) as f64).collect())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    format!("{cores} cores, load at the end {load}")
}

/// Puts the text between the marks of a page.
pub(crate) fn put(page: &Path, mark: &str, text: &str) {
    let old = std::fs::read_to_string(page).expect("the page");
    let marks = [format!("<!-- {mark} -->"), format!("<!-- /{mark} -->")];
    let [begin, end] = marks
        .each_ref()
        .map(|mark| old.find(mark).expect("the page has the marks"));
    let begin = begin + marks[0].len();
    let new = format!("{}\n{text}{}", &old[..begin], &old[end..]);
    std::fs::write(page, new).expect("the page can be written");
}

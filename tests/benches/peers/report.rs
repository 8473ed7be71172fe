//! The figures as Markdown tables, which a terminal shows as well.

use std::fmt::Write as _;

use crate::aims;
use crate::figures::{self, Contender, Measured, Results};

/// A column's head and its cells.
type Column = (&'static str, fn(&Contender, &Measured) -> Option<String>);

const COLUMNS: [Column; 19] = [
    ("cycles/s", |one, _| value(one, figures::CYCLES)),
    ("ratio", ratio),
    ("p50 ms", |one, _| value(one, figures::P50)),
    ("p99 ms", |one, _| value(one, figures::P99)),
    ("longest ms", |one, _| value(one, figures::LONGEST)),
    ("shares of tasks", |one, _| {
        range(one, figures::TASK_MIN, figures::TASK_MAX)
    }),
    ("of processes", |one, _| {
        range(one, figures::PROCESS_MIN, figures::PROCESS_MAX)
    }),
    ("commands/cycle", |one, _| value(one, "commands/cycle")),
    ("commands/read", |one, _| value(one, figures::READ)),
    (figures::CLIENT, |one, _| value(one, figures::CLIENT)),
    ("client system µs/cycle", |one, _| {
        value(one, "client system µs/cycle")
    }),
    ("server µs/cycle", |one, _| value(one, "server µs/cycle")),
    ("server system µs/cycle", |one, _| {
        value(one, "server system µs/cycle")
    }),
    ("client sleeps/cycle", |one, _| {
        value(one, "client sleeps/cycle")
    }),
    ("allocations/cycle", |one, _| {
        value(one, figures::ALLOCATIONS)
    }),
    ("bytes a waiter", |one, _| value(one, "bytes a waiter")),
    ("commands/s", |one, _| value(one, "commands/s")),
    ("client % of a core", |one, _| {
        value(one, "client % of a core")
    }),
    ("attribute / run()", |one, _| {
        value(one, "attribute / run()")
    }),
];

/// Everything.
pub(crate) fn markdown(results: &Results) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "`{}`\n", results.command);
    let machine: Vec<_> = results
        .machine
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let _ = writeln!(text, "{}\n", machine.join(" · "));
    text.push_str("![cycles/s of each library](chart.svg)\n\n");
    for measured in &results.workloads {
        text.push_str(&workload(measured));
    }
    text.push_str(&aims::markdown(results));
    if !results.skipped.is_empty() {
        text.push_str("\nLeft out:\n\n");
        for why in &results.skipped {
            let first = why.lines().next().unwrap_or_default();
            let _ = writeln!(text, "- {first}");
        }
    }
    text
}

/// One workload's table. Columns without a figure are left out.
pub(crate) fn workload(measured: &Measured) -> String {
    let mut text = format!("### {}\n\n{}.", measured.name, measured.about);
    let compared = measured
        .libraries
        .iter()
        .any(|one| ratio(one, measured).is_some());
    if compared {
        let _ = write!(text, " Ratios are to `{}`.", measured.reference);
    }
    text.push_str("\n\n");
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|(_, cell)| {
            measured
                .libraries
                .iter()
                .any(|one| cell(one, measured).is_some())
        })
        .collect();
    let mut rows = vec![vec!["library".to_owned()]];
    rows[0].extend(columns.iter().map(|(head, _)| (*head).to_owned()));
    for one in &measured.libraries {
        let mut row = vec![one.about.clone()];
        row.extend(
            columns
                .iter()
                .map(|(_, cell)| cell(one, measured).unwrap_or_else(|| "–".to_owned())),
        );
        rows.push(row);
    }
    text.push_str(&table(&rows));
    text.push('\n');
    text
}

/// Columns as wide as their widest cell, with numbers to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(3)
    };
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let _ = match column {
                0 => write!(text, "| {cell:width$} "),
                _ => write!(text, "| {cell:>width$} "),
            };
        }
        text.push_str("|\n");
        if index == 0 {
            for column in 0..row.len() {
                let dashes = "-".repeat(width(column) - 1);
                let _ = match column {
                    0 => write!(text, "| {dashes}- "),
                    _ => write!(text, "| {dashes}: "),
                };
            }
            text.push_str("|\n");
        }
    }
    text
}

/// Three digits.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value >= 1e4 => format!("{:.1} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        value => format!("{value:.3}"),
    }
}

fn value(one: &Contender, figure: &str) -> Option<String> {
    one.median.get(figure).map(|value| number(*value))
}

fn range(one: &Contender, least: &str, most: &str) -> Option<String> {
    let least = one.median.get(least)?;
    let most = one.median.get(most)?;
    Some(format!("{least:.2}–{most:.2}"))
}

/// The ratio of cycles, or of times where there are no cycles.
fn ratio(one: &Contender, measured: &Measured) -> Option<String> {
    let reference = measured
        .libraries
        .iter()
        .find(|other| other.name == measured.reference)?;
    if measured.libraries.len() < 2 {
        return None;
    }
    let figure = match one.median.contains_key(figures::CYCLES) {
        true => figures::CYCLES,
        false => figures::P50,
    };
    let ratio = one.median.get(figure)? / reference.median.get(figure)?;
    Some(number(ratio))
}

/// Replaces what stands between the page's marks with this name. A page without such marks stays as
/// it is.
pub(crate) fn put_into(page: &str, name: &str, tables: &str) -> String {
    let begin = format!("<!-- {name}: written by the benchmark -->");
    let end = format!("<!-- end of {name} -->");
    let Some((before, rest)) = page.split_once(&begin) else {
        return page.to_owned();
    };
    let (_, after) = rest.split_once(&end).expect("a mark at the end, too");
    format!("{before}{begin}\n\n{}\n\n{end}{after}", tables.trim())
}

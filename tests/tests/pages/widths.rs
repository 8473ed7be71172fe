//! A table's cell is read at a glance, and no line is too long.

use std::fs;

use crate::{FOLDERS, definition, every_file, pages, root};

/// The answer stands in the cell. Its tests and its reasons stand below the table.
#[test]
fn no_cell_of_a_table_is_longer_than_160_characters() {
    let (mut cells, mut long) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let rows = by_hand(&text).filter(|(_, line)| line.starts_with('|'));
        for (number, cell) in rows.flat_map(|(at, row)| cells_of(row).map(move |cell| (at, cell))) {
            cells += 1;
            if cell.chars().count() > 160 {
                long.push(format!("{}:{number}: {cell}", page.display()));
            }
        }
    }
    assert!(
        long.is_empty(),
        "{} of {cells} cells: {long:#?}",
        long.len()
    );
    assert!(cells > 1000, "{cells}");
}

#[test]
fn no_line_of_the_pages_is_longer_than_100_columns() {
    let (mut lines, mut long) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (number, line) in by_hand(&text) {
            lines += 1;
            let can_be_broken = !line.starts_with('|') && definition(line).is_none();
            if line.chars().count() > 100 && can_be_broken {
                long.push(format!("{}:{number}", page.display()));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
    assert!(lines > 2000, "{lines}");
}

/// The numbered lines that a person has written as text: no code, and nothing of a benchmark.
fn by_hand(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut is_code, mut is_written) = (false, false);
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        is_written = match line.strip_prefix("<!-- ") {
            Some(mark) if mark.contains(": written by ") => true,
            Some(mark) if mark.starts_with("end of ") => false,
            _ => is_written,
        };
        !is_fence && !is_code && !is_written
    })
}

/// The cells of a table's row. A `\|` is a character of its cell.
fn cells_of(row: &str) -> impl Iterator<Item = String> {
    let row = row.replace("\\|", "\u{1}");
    let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
    cells.into_iter().filter(|cell| !cell.is_empty())
}

/// A test that can't fail shows nothing.
#[test]
fn a_long_cell_and_a_long_line_are_found() {
    let text = "| a | b\\|c |\n```text\n| fence |\n```\n<!-- x: written by the benchmark -->\n\
        | figure |\n<!-- end of x -->\ntext\n";
    let found: Vec<_> = by_hand(text)
        .filter(|(_, line)| !line.starts_with("<!--"))
        .collect();
    assert_eq!(found, [(1, "| a | b\\|c |"), (8, "text")]);
    assert_eq!(
        cells_of("| a | b\\|c |").collect::<Vec<_>>(),
        ["a", "b\u{1}c"]
    );
}

/// rustfmt leaves long strings, attributes and macros as they are. Expansions are exempt, and so
/// are the files whose lines the compiler's messages count.
#[test]
fn no_line_of_the_sources_is_longer_than_100_columns() {
    let (mut files, mut long) = (0, Vec::new());
    for folder in FOLDERS {
        for path in every_file(&root().join(folder)) {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
            let is_source = [".rs", ".lua", ".sql"]
                .iter()
                .any(|end| name.ends_with(end));
            if !is_source || name.ends_with(".expanded.rs") || name.starts_with("tests/ui/") {
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let lines = (1..).zip(text.lines());
            let too_long = lines.filter(|(_, line)| is_too_long(line));
            long.extend(too_long.map(|(number, _)| format!("{name}:{number}")));
        }
    }
    assert!(long.is_empty(), "{long:#?}");
    assert!(files > 500, "{files}");
}

/// A row of a table and a link can't be broken.
fn is_too_long(line: &str) -> bool {
    let unbroken = ["/// |", "//! |", "/// ["].iter();
    let unbroken = unbroken
        .copied()
        .any(|start| line.trim_start().starts_with(start));
    line.chars().count() > 100 && !unbroken
}

//! What people read. On the pages no link is dead, the files and tests that they name exist, and a
//! table's cell is read at a glance. No line of a page or of the sources is too long.
#![expect(
    clippy::unwrap_used,
    reason = "without the files there is nothing to test"
)]

mod links;
mod settings;
mod widths;

use std::fs;
use std::path::{Path, PathBuf};

/// Pages, and folders of pages.
const PAGES: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "lock-macros/src",
    "lock-runtime/docs",
    "tests/benches/README.md",
    "tests/long/README.md",
];

/// The folders with sources.
const FOLDERS: [&str; 4] = ["examples", "lock-macros", "lock-runtime", "tests"];

#[test]
fn the_readme_is_read_in_a_few_minutes() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= 170, "{lines} lines");
}

/// Every file and every test that a page names, in full or by its end.
#[test]
fn what_the_pages_name_is_there() {
    let (mut paths, mut tests) = (Vec::new(), String::new());
    for folder in FOLDERS {
        for path in every_file(&root().join(folder)) {
            if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                // Elsewhere stand unit tests.
                if folder == "tests" || text.contains("test]\n") {
                    tests += &text;
                }
            }
            paths.push(path.to_str().unwrap().to_owned());
        }
    }
    let (mut named, mut missing) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for word in text.split('`').skip(1).step_by(2) {
            let is_file = word.ends_with(".rs") || word.ends_with(".lua");
            let is_path = is_file && !word.contains(['*', '<', ' ']);
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let is_test = word.chars().all(is_word) && word.split('_').count() > 4;
            let is_there = if is_path {
                paths.iter().any(|path| path.ends_with(&format!("/{word}")))
            } else {
                let (line, listed) = (format!("fn {word}("), format!("    {word},"));
                !is_test || tests.contains(&line) || tests.contains(&listed)
            };
            named += usize::from(is_path || is_test);
            if !is_there {
                missing.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 150, "{named}");
}

fn every_file(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let found = entries.flat_map(|entry| match entry.path() {
        folder if folder.is_dir() => every_file(&folder),
        file => vec![file],
    });
    found.collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for page in PAGES {
        let path = root().join(page);
        if path.is_dir() {
            let files = fs::read_dir(path).unwrap().map(|file| file.unwrap().path());
            pages.extend(files.filter(|file| file.extension().is_some_and(|end| end == "md")));
        } else {
            pages.push(path);
        }
    }
    pages
}

/// `[label]: target`
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

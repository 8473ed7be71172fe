//! The compiler's messages about mistakes. Those of one option share a file, and each is one error.
#![expect(
    clippy::unwrap_used,
    reason = "without the files there is nothing to test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Many mistakes in one attribute, on purpose.
const ALL_AT_ONCE: &str = "fail/all_at_once.rs";

/// The beginnings of a mistake. It ends where the next one begins.
const BEGINNINGS: [&str; 5] = [
    "#[distributed_lock",
    "#[rate_limited",
    "lock_key!(",
    "LockClient::in_memory_",
    ".acquire()",
];

#[test]
fn mistakes_are_explained() {
    // Without a `pass` among them, one cargo checks all of them side by side, and the dependencies
    // without their code.
    trybuild::TestCases::new().compile_fail("fail/**/*.rs");
}

#[test]
fn one_mistake_is_one_error() {
    let sources = files("rs");
    let messages = files("stderr");
    let expected: BTreeSet<PathBuf> = sources
        .iter()
        .map(|source| source.with_extension("stderr"))
        .collect();
    let alone: Vec<&PathBuf> = messages.symmetric_difference(&expected).collect();
    assert!(alone.is_empty(), "no message, or none it is for: {alone:?}");
    for source in sources {
        let text = fs::read_to_string(source.with_extension("stderr")).unwrap();
        let errors = error_lines(&text, &source);
        if source == Path::new(ALL_AT_ONCE) {
            assert!(errors.len() > 20, "{}", errors.len());
            continue;
        }
        let mistakes = mistakes(&fs::read_to_string(&source).unwrap());
        assert!(!mistakes.is_empty(), "{}", source.display());
        let mut unexplained = mistakes.clone();
        for error in errors {
            let mistake = mistakes.iter().rev().find(|first| **first <= error);
            assert!(
                mistake.is_some_and(|mistake| unexplained.remove(mistake)),
                "{}:{error} is not the one error of one mistake",
                source.display()
            );
        }
        assert!(
            unexplained.is_empty(),
            "{}: no error for the mistakes in the lines {unexplained:?}",
            source.display()
        );
    }
}

/// The line to which each error or warning points first.
fn error_lines(messages: &str, source: &Path) -> Vec<usize> {
    let place = format!("--> {}:", source.display());
    let mut lines = messages.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("error") || line.starts_with("warning") {
            let place = lines
                .next()
                .and_then(|next| next.trim().strip_prefix(&place));
            let line = place.and_then(|place| place.split(':').next());
            found.push(line.unwrap().parse().unwrap());
        }
    }
    found
}

/// The first line of each mistake. Two attributes on one function are one mistake.
fn mistakes(source: &str) -> BTreeSet<usize> {
    let begins = |line: &str| BEGINNINGS.iter().any(|beginning| line.contains(beginning));
    let mut found = BTreeSet::new();
    let mut before = false;
    for (at, line) in source.lines().enumerate() {
        let begins = begins(line) && !line.trim_start().starts_with("//");
        if begins && !before {
            found.insert(at + 1);
        }
        before = begins;
    }
    found
}

#[test]
fn every_option_has_its_files() {
    let options = options_listed_in("fail/options.stderr");
    assert!(options.contains("key") && options.contains("crate"));
    for option in options {
        exists(&format!("pass/option_{option}.rs"));
        every_mistake_exists("option", &option);
    }
}

#[test]
fn every_option_of_the_rate_limiter_has_its_files() {
    let options = options_listed_in("fail/rate_limited/options.stderr");
    assert!(options.contains("rate") && options.contains("crate"));
    let shapes = fs::read_to_string("pass/rate_limited.rs").unwrap();
    let used = |option: &str| {
        let attributes = shapes.split("#[rate_limited(").skip(1);
        let mut attributes = attributes.filter_map(|rest| rest.lines().next());
        attributes.any(|line| line.contains(&format!("{option} = ")))
    };
    for option in options {
        assert!(
            used(&option),
            "`{option}` is missing in pass/rate_limited.rs"
        );
        every_mistake_exists("rate_limited", &option);
    }
}

fn every_mistake_exists(folder: &str, option: &str) {
    let file = format!("fail/{folder}/{option}.rs");
    exists(&file);
    let text = fs::read_to_string(&file).unwrap();
    for mistake in ["doubled", "wrong_value", "without_value"] {
        let before = text
            .split(&format!("\nasync fn {mistake}("))
            .next()
            .unwrap();
        let attribute = before.rsplit("\n#[").next().unwrap();
        assert!(
            before.len() < text.len() && attribute.contains(option),
            "{file}: `{mistake}` is missing"
        );
    }
}

fn exists(file: &str) {
    assert!(Path::new(file).exists(), "{file} is missing");
}

/// The options that the message about an unknown option lists.
fn options_listed_in(messages: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(messages).unwrap();
    let (_, options) = text
        .lines()
        .find_map(|line| line.split_once("the options are "))
        .unwrap();
    let options = options.split('`').skip(1).step_by(2);
    options.map(str::to_owned).collect()
}

/// The files of `fail` whose names end so.
fn files(extension: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::from("fail")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.insert(path);
            }
        }
    }
    found
}

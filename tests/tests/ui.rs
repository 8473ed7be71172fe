//! What the compiler says: mistakes, one a file, with the messages that explain them.
#![expect(
    clippy::unwrap_used,
    reason = "without the files there is nothing to test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Many mistakes in one build, on purpose.
const ALL_AT_ONCE: &str = "ui/fail/all_at_once.rs";

#[test]
fn mistakes_are_explained() {
    // With no `pass` among them all are checked by one cargo, side by side, and the dependencies without their code.
    trybuild::TestCases::new().compile_fail("ui/fail/**/*.rs");
}

#[test]
fn one_mistake_is_one_error() {
    let messages = files("stderr");
    let sources = files("rs").into_iter();
    let expected: BTreeSet<PathBuf> = sources
        .map(|source| source.with_extension("stderr"))
        .collect();
    let alone: Vec<&PathBuf> = messages.symmetric_difference(&expected).collect();
    assert!(alone.is_empty(), "no message, or none it is for: {alone:?}");
    for message in messages {
        let text = fs::read_to_string(&message).unwrap();
        let errors = text
            .lines()
            .filter(|line| line.starts_with("error") || line.starts_with("warning"))
            .count();
        if message == Path::new(ALL_AT_ONCE).with_extension("stderr") {
            assert!(errors > 20, "{errors}");
        } else {
            assert_eq!(errors, 1, "{}", message.display());
        }
    }
}

#[test]
fn every_option_has_its_files() {
    let options = options_listed_in("ui/fail/option/unknown.stderr");
    assert!(options.contains("key") && options.contains("crate"));
    for option in options {
        exists(&format!("pass/option_{option}.rs"));
        every_mistake_exists("option", &option);
    }
}

#[test]
fn every_option_of_the_rate_limiter_has_its_files() {
    let options = options_listed_in("ui/fail/rate_limited/unknown.stderr");
    assert!(options.contains("rate") && options.contains("crate"));
    let shapes = fs::read_to_string("ui/pass/rate_limited.rs").unwrap();
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
    for mistake in ["doubled", "wrong_value", "without_value"] {
        exists(&format!("fail/{folder}/{option}_{mistake}.rs"));
    }
}

fn exists(file: &str) {
    assert!(Path::new("ui").join(file).exists(), "{file} is missing");
}

/// The options, as the message about one that is none lists them.
fn options_listed_in(message: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(message).unwrap();
    let (_, options) = text
        .lines()
        .next()
        .and_then(|line| line.split_once("the options are "))
        .unwrap();
    let options = options.split('`').skip(1).step_by(2);
    options.map(str::to_owned).collect()
}

/// The files of `ui/fail` that end so.
fn files(extension: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::from("ui/fail")];
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

//! Clippy has the same findings for a function with the attribute and without it.

#![expect(
    clippy::expect_used,
    reason = "without clippy and the libraries there is nothing to test"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const SHAPES: &str = "lints/shapes.rs";

/// The line, the column, the lint, and the message.
type Finding = (u64, u64, String, String);

#[test]
fn the_attribute_adds_no_finding_and_hides_none() {
    let plain = findings(&[]);
    let locked = findings(&["--cfg", "locked"]);
    assert!(
        plain.len() > 20,
        "the shapes are there to be found fault with: {plain:#?}"
    );
    let added: Vec<_> = locked.difference(&plain).collect();
    let hidden: Vec<_> = plain.difference(&locked).collect();
    assert!(
        added.is_empty() && hidden.is_empty(),
        "added: {added:#?}, hidden: {hidden:#?}"
    );
}

fn findings(more: &[&str]) -> BTreeSet<Finding> {
    let libraries = libraries();
    let output = Command::new(clippy())
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "--out-dir",
            env!("CARGO_TARGET_TMPDIR"),
        ])
        .args([
            "--error-format",
            "json",
            "-W",
            "clippy::pedantic",
            "-W",
            "clippy::nursery",
        ])
        .arg("-L")
        .arg(format!("dependency={}", libraries.display()))
        .args(["lock_runtime", "tokio", "async_trait"].map(|name| newest(&libraries, name)))
        .args(more)
        .arg(SHAPES)
        .output()
        .expect("clippy-driver: rustup component add clippy");
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{told}");
    let messages = told
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    messages
        .filter_map(|message: Value| finding(&message))
        .collect()
}

fn finding(message: &Value) -> Option<Finding> {
    // Only the count at the end has no lint.
    let lint = message["code"]["code"].as_str()?;
    let place = message["spans"]
        .as_array()?
        .iter()
        .find(|span| span["is_primary"] == true)?;
    Some((
        place["line_start"].as_u64()?,
        place["column_start"].as_u64()?,
        lint.to_owned(),
        message["message"].as_str()?.to_owned(),
    ))
}

/// The clippy of the cargo that runs this test, or the first in the path.
fn clippy() -> PathBuf {
    let beside = option_env!("CARGO").map(|cargo| Path::new(cargo).with_file_name("clippy-driver"));
    beside
        .filter(|driver| driver.exists())
        .unwrap_or_else(|| "clippy-driver".into())
}

/// The folder with the libraries that this test was built with.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    test.parent().expect("a folder").to_owned()
}

/// `--extern` for the library that was built last. Older ones may lie beside it.
fn newest(folder: &Path, name: &str) -> String {
    let prefix = format!("lib{name}-");
    let entries = folder.read_dir().expect("the libraries").flatten();
    let built = entries.filter(|entry| {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        file.starts_with(&prefix)
            && (file.ends_with(".rlib") || file.ends_with(std::env::consts::DLL_SUFFIX))
    });
    let newest = built.max_by_key(|entry| entry.metadata().and_then(|file| file.modified()).ok());
    let newest = newest.expect("the library is built").path();
    format!("--extern={name}={}", newest.display())
}

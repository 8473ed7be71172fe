//! Golden fixtures: what each engine stores and sends, kept as files in `tests/fixtures`. Today's
//! code writes the same, and understands what it finds written there.
//!
//! A test of this module that fails says that something stored or sent has changed. Then a later
//! release meets an earlier one, and needs a mark; see "Versions" in ARCHITECTURE.md. With the
//! variable `LOCK_WRITE_FIXTURES` the files are written anew.

mod consensus;
mod layouts;
mod messages;
mod postgres;
mod redis;
mod sqlite;
mod stored;

use std::path::{Path, PathBuf};

use lock_testkit::wall_micros;

const HEAD: &str = "\
# Written by
# `LOCK_WRITE_FIXTURES=yes cargo test -p lock-tests --all-features --test versions golden`,
# and read by the same without that variable. <…> is a time.
";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

/// The lines of a fixture.
fn lines(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path(name)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// What today's code wrote is what the file says.
fn expect_fixture(name: &str, today: &[String]) {
    if std::env::var_os("LOCK_WRITE_FIXTURES").is_some() {
        let text = format!("{HEAD}{}\n", today.join("\n"));
        return std::fs::write(path(name), text).unwrap();
    }
    let before = lines(name);
    let gone: Vec<_> = before.iter().filter(|line| !today.contains(line)).collect();
    let new: Vec<_> = today.iter().filter(|line| !before.contains(line)).collect();
    assert!(
        before == today,
        "what is stored or sent has changed, and versions before don't know it: see \"Versions\" \
         in ARCHITECTURE.md\n{name} says {gone:#?}\nand today's code writes {new:#?}"
    );
}

/// Where a time may begin, and the microseconds of its unit.
const BASES: [(&str, u64, f64); 6] = [
    ("now", 0, 1.0),
    ("now-ms", 0, 1e3),
    ("suspended", 3_000_000_000_000_000, 1.0),
    ("heard", 6_000_000_000_000_000, 1.0),
    ("heard-ms", 6_000_000_000_000_000, 1e3),
    ("now-ns", 0, 1e-3),
];

/// The longest time in a fixture, in seconds.
const LONGEST: f64 = 90_000.0;
/// Times are rounded to this. Half of it is what a slow machine may need.
const ROUND: f64 = 60.0;

fn rounded(seconds: f64) -> i64 {
    ((seconds / ROUND).round() * ROUND) as i64
}

/// A time to live.
fn time_to_live(millis: i64) -> String {
    format!("{}s", rounded(millis as f64 / 1e3))
}

/// The same text with times by words: `<now+60s>`.
fn by_words(text: &str) -> String {
    let now = wall_micros() as f64 / 1e6;
    let (mut shown, mut number) = (String::new(), String::new());
    for character in text.chars().chain([' ']) {
        if character.is_ascii_digit() {
            number.push(character);
            continue;
        }
        shown += &time_by_words(&number, now).unwrap_or(std::mem::take(&mut number));
        number.clear();
        shown.push(character);
    }
    shown.pop();
    shown
}

fn time_by_words(number: &str, now: f64) -> Option<String> {
    let number: u64 = (number.len() > 12).then(|| number.parse().ok())??;
    BASES.iter().find_map(|(base, from, unit)| {
        let from_now = number.checked_sub(*from)? as f64 * unit / 1e6 - now;
        (from_now.abs() < LONGEST).then(|| format!("<{base}{:+}s>", rounded(from_now)))
    })
}

/// The text whose times are by words.
fn by_numbers(text: &str) -> String {
    let now = wall_micros() as f64 / 1e6;
    let mut numbers = String::new();
    let mut rest = text;
    while let Some((before, time)) = rest.split_once('<') {
        let (time, after) = time.split_once('>').unwrap();
        let (base, from_now) = time.split_at(time.find(['+']).unwrap());
        let (_, from, unit) = BASES.iter().find(|(name, ..)| *name == base).unwrap();
        let from_now: f64 = from_now.trim_end_matches('s').parse().unwrap();
        let number = from + ((now + from_now) * 1e6 / unit) as u64;
        numbers += &format!("{before}{number}");
        rest = after;
    }
    numbers + rest
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

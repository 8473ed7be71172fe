//! Equal keys come from equal values only: a million random tuples through real templates, made of
//! what would be mistaken for a separator, an escape or nothing.
#![expect(clippy::panic, reason = "a test that can't go on has failed")]

use std::cell::RefCell;
use std::collections::HashMap;

use lock_runtime::{LockKey, lock_key};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Of the four templates together.
const TUPLES: u32 = 1_000_000;

type Values = (String, String, String);

/// From few pieces, so that values that look alike are met often.
fn value() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            ":", "%", "{", "}", "<", ">", "%3A", "%25", "%7D", "3A", "25", "a", "1", "-",
        ]),
        2 => prop::sample::select(vec![
            " ", "\n", "\0", "\u{7f}", "\u{85}", "\u{a0}", "\u{2003}", "\u{202e}", "é", "e\u{301}", "٣", "🔒",
        ]),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn never_one_key_for_two(render: fn(&Values) -> LockKey) {
    let seen: RefCell<HashMap<String, Values>> = RefCell::default();
    let config = Config {
        cases: TUPLES / 4,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&(value(), value(), value()), |values| {
        let key = render(&values);
        if let Some(other) = seen.borrow().get(key.as_str()) {
            prop_assert_eq!(other, &values, "{} is the key of both", key);
        }
        seen.borrow_mut().insert(key.as_str().to_owned(), values);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn with_colons() {
    never_one_key_for_two(|(a, b, c)| lock_key!("<a>:<b>:<c>"));
}

#[test]
fn with_a_tag_in_front() {
    never_one_key_for_two(|(a, b, c)| lock_key!("{<a>}:<b>:<c>"));
}

#[test]
fn with_a_tag_between() {
    never_one_key_for_two(|(a, b, c)| lock_key!("<a>{<b>}<c>"));
}

#[test]
fn with_words_between() {
    never_one_key_for_two(|(a, b, c)| lock_key!("order:<a>:x:<b>:%:<c>"));
}

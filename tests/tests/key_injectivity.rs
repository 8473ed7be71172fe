//! Equal keys come only from equal values. A million random tuples go through real templates. Their
//! parts look like separators, escapes or nothing.
#![expect(clippy::panic, reason = "a test that can't go on has failed")]

use std::cell::RefCell;
use std::collections::HashMap;

use lock_runtime::{LockKey, lock_key};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Over the four templates together.
const TUPLES: u32 = 1_000_000;

type Values = (String, String, String);

/// Few pieces, so that similar values meet often.
const PIECES: [&str; 14] = [
    ":", "%", "{", "}", "<", ">", "%3A", "%25", "%7D", "3A", "25", "a", "1", "-",
];
const UNUSUAL: [&str; 12] = [
    " ", "\n", "\0", "\u{7f}", "\u{85}", "\u{a0}", "\u{2003}", "\u{202e}", "é", "e\u{301}", "٣",
    "🔒",
];

/// Up to three pieces; one in five is unusual.
fn value(random: &mut u128) -> String {
    let mut next = |below: u128| {
        let number = usize::try_from(*random % below).unwrap_or(0);
        *random /= below;
        number
    };
    let mut value = String::new();
    for _ in 0..next(4) {
        let number = next(5 * 12 * 14);
        value.push_str(match number % 5 {
            0 => UNUSUAL[number / 5 % 12],
            _ => PIECES[number / 5 % 14],
        });
    }
    value
}

fn never_one_key_for_two(render: fn(&Values) -> LockKey) {
    let seen: RefCell<HashMap<String, Values>> = RefCell::default();
    let config = Config {
        cases: TUPLES / 4,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&any::<u128>(), |mut random| {
        let values = (value(&mut random), value(&mut random), value(&mut random));
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

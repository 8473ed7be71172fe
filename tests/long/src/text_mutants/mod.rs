//! Breaks a text line by line, in a language of which only words and blocks are known.

mod change;
mod line;

use std::ops::Range;

pub(crate) use self::change::{Change, changes, taken};
pub(crate) use self::line::tokens;

/// What a sign can be instead in any language.
pub(crate) fn other_signs(sign: &str) -> &'static [&'static str] {
    match sign {
        "<" => &["<="],
        "<=" => &["<"],
        ">" => &[">="],
        ">=" => &[">"],
        "+" => &["-"],
        // The sign of a number can only be dropped.
        "-" => &["+", ""],
        _ => &[],
    }
}

/// What must be known of a language to break it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Language {
    /// How many blocks a word opens, less those that it closes, after the word before it.
    pub(crate) opens: fn(&str, Option<&str>) -> i32,
    /// Begins a declaration. Without it nothing works at all, which is too easy to find.
    pub(crate) declares: &'static str,
    /// Where a statement may end that begins on this line and does not end there.
    pub(crate) ends: fn(&[&str], usize) -> Range<usize>,
    /// What a word or sign can be instead, after the word before it; empty: nothing.
    pub(crate) others: fn(&str, Option<&str>) -> &'static [&'static str],
}

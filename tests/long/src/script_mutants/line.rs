//! Which parts of a line of Lua are code.

use std::ops::Range;

/// The words, numbers and signs of a line, with their places. Strings and comments are left out.
/// The scripts have no long comments.
pub(super) fn tokens(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [b'-', b'-', ..] => return found,
            [quote @ (b'\'' | b'"'), text @ ..] => {
                let mut escaped = false;
                let inside = text.iter().take_while(|byte| {
                    let ends = *byte == quote && !escaped;
                    escaped = **byte == b'\\' && !escaped;
                    !ends
                });
                at += inside.count() + 2;
                continue;
            }
            [first, ..] if is_word(*first) => {
                rest.iter().take_while(|byte| is_word(**byte)).count()
            }
            [b'<' | b'>' | b'=' | b'~', b'=', ..] | [b'.', b'.', ..] => 2,
            [b' ' | b'\t', ..] => {
                at += 1;
                continue;
            }
            _ => 1,
        };
        found.push(at..at + length);
        at += length;
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How many blocks a line opens, less those that it closes.
pub(super) fn depth(line: &str) -> i32 {
    let words = tokens(line);
    let of = |token: &Range<usize>| match &line[token.clone()] {
        "if" | "for" | "while" | "function" => 1,
        "end" => -1,
        _ => 0,
    };
    words.iter().map(of).sum()
}

/// Whether a line begins the declaration of a function. Without it nothing works at all, which is
/// too easy to find.
pub(super) fn is_function(line: &str) -> bool {
    let is = |token: &Range<usize>| &line[token.clone()] == "function";
    tokens(line).iter().any(is)
}

//! Which parts of a line are code.

use std::ops::Range;

/// The words, numbers and signs of a line, with their places. Strings and comments are left out.
/// There are no long comments.
pub(crate) fn tokens(line: &str) -> Vec<Range<usize>> {
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
            [b'<' | b'>' | b'=' | b'~' | b':', b'=', ..] | [b'.', b'.', ..] | [b'<', b'>', ..] => 2,
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

/// A token, with the one before it.
pub(super) fn words(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut before = None;
    let word = move |token: Range<usize>| {
        let word = &line[token];
        (word, before.replace(word))
    };
    tokens(line).into_iter().map(word)
}

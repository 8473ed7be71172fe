//! [`Scanner`]: finds the end of a reply of any shape, wherever what has come so far is cut.
//!
//! What a server, or whatever is in its place, may send is bounded: the bytes and values of a
//! reply, the length of a line, and the depth of values in values. Nothing is reserved for what is
//! only announced.

use std::fmt;

/// The longest reply. The map of the largest cluster has some megabytes.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// The most values in one reply.
const MOST_VALUES: usize = 1 << 20;
/// The longest line: a number, a status or an error.
const MOST_IN_LINE: usize = 64 << 10;
/// How deep values may be in others.
const MOST_DEPTH: usize = 16;

/// Why a connection can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// More than this client reads.
    TooMuch(&'static str, usize),
    /// It is not RESP.
    NoResp,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMuch(what, most) => {
                write!(
                    f,
                    "a reply has more than {most} {what}, the most that is read"
                )
            }
            Self::NoResp => f.write_str("a reply is not in the Redis protocol (RESP3)"),
        }
    }
}

/// The state between two pieces of one reply.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// The bytes of this reply that are scanned.
    at: usize,
    /// Of a line that is not complete: so far it has no end.
    in_line: usize,
    /// How many values each level still expects; the deepest is last.
    open: Vec<usize>,
    values: usize,
}

impl Scanner {
    /// The length of the reply at the beginning of these bytes, if it is complete. Called again,
    /// there must be the same bytes and more.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
        loop {
            let Some(line) = self.line(bytes)? else {
                return Ok(None);
            };
            let mut end = self.at + line.len() + 2;
            let mut inside = 0;
            if let Some((kind, said)) = line.split_first() {
                match kind {
                    b'$' | b'!' | b'=' => match length(said)? {
                        None if *kind == b'$' => {}
                        None => return Err(Unreadable::NoResp),
                        Some(length) => {
                            end = end.saturating_add(length).saturating_add(2);
                            expect_at_most(end, MOST_BYTES, "bytes")?;
                            if bytes.len() < end {
                                return Ok(None);
                            }
                            if bytes[end - 2..end] != *b"\r\n" {
                                return Err(Unreadable::NoResp);
                            }
                        }
                    },
                    b'*' => inside = length(said)?.unwrap_or(0),
                    b'~' | b'>' => inside = length(said)?.ok_or(Unreadable::NoResp)?,
                    b'%' | b'|' => {
                        let pairs = length(said)?.ok_or(Unreadable::NoResp)?;
                        let and_its_value = usize::from(*kind == b'|');
                        inside = pairs.saturating_mul(2).saturating_add(and_its_value);
                    }
                    b':' => drop(integer(said).ok_or(Unreadable::NoResp)?),
                    b'+' | b'-' | b'_' | b',' | b'#' | b'(' => {}
                    _ => return Err(Unreadable::NoResp),
                }
            } else {
                return Err(Unreadable::NoResp);
            }
            expect_at_most(end, MOST_BYTES, "bytes")?;
            (self.at, self.in_line) = (end, 0);
            if self.finish_value(inside)? {
                *self = Self {
                    open: std::mem::take(&mut self.open),
                    ..Self::default()
                };
                return Ok(Some(end));
            }
        }
    }

    /// The next line, without its end.
    fn line<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<&'b [u8]>, Unreadable> {
        let rest = bytes.get(self.at..).unwrap_or_default();
        if let Some(kind) = rest.first()
            && !b"$*:+->_%,#~!=(|".contains(kind)
        {
            return Err(Unreadable::NoResp);
        }
        let mut from = self.in_line;
        while let Some(found) = rest.get(from..).and_then(find_return) {
            let end = from + found;
            match rest.get(end + 1) {
                Some(b'\n') => {
                    expect_at_most(end, MOST_IN_LINE, "bytes in a line")?;
                    return Ok(Some(&rest[..end]));
                }
                Some(_) => from = end + 1,
                None => break,
            }
        }
        // A return that is the last byte is looked at again.
        self.in_line = rest.len() - usize::from(rest.last() == Some(&b'\r'));
        expect_at_most(self.in_line, MOST_IN_LINE, "bytes in a line")?;
        expect_at_most(self.at + self.in_line, MOST_BYTES, "bytes")?;
        Ok(None)
    }

    /// A value has ended, or begins with `inside` values in it. Returns whether the whole reply has
    /// ended.
    fn finish_value(&mut self, inside: usize) -> Result<bool, Unreadable> {
        self.values = self.values.saturating_add(inside);
        expect_at_most(self.values, MOST_VALUES, "values")?;
        if inside > 0 {
            self.open.push(inside);
            expect_at_most(self.open.len(), MOST_DEPTH, "values in values")?;
            return Ok(false);
        }
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return Ok(false);
            }
            self.open.pop();
        }
        Ok(true)
    }
}

fn find_return(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\r')
}

fn expect_at_most(size: usize, most: usize, what: &'static str) -> Result<(), Unreadable> {
    match size > most {
        true => Err(Unreadable::TooMuch(what, most)),
        false => Ok(()),
    }
}

/// A length; `None` is `-1`, a value that is missing.
fn length(said: &[u8]) -> Result<Option<usize>, Unreadable> {
    match integer(said) {
        Some(-1) => Ok(None),
        Some(length) => usize::try_from(length)
            .map(Some)
            .map_err(|_| Unreadable::NoResp),
        None => Err(Unreadable::NoResp),
    }
}

/// A whole number, as servers write it.
pub(super) fn integer(said: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match said.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, said),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number = 0_i64;
    for digit in digits {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number = number.checked_mul(10)?;
        number = match is_negative {
            true => number.checked_sub(digit.into())?,
            false => number.checked_add(digit.into())?,
        };
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_digits_only() {
        for said in ["", "-", "1:", "1/", "+1", " 1", "9223372036854775808"] {
            assert_eq!(integer(said.as_bytes()), None, "{said}");
        }
        for number in [0, 7, 10, -10, i64::MAX, i64::MIN] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
    }

    #[test]
    fn a_line_that_came_at_once_is_bounded_as_well() {
        let line = |length: usize| format!("+{}\r\n", "x".repeat(length - 1));
        let longest = line(MOST_IN_LINE);
        let length = Some(longest.len());
        assert_eq!(Scanner::default().scan(longest.as_bytes()), Ok(length));
        let longer = line(MOST_IN_LINE + 1);
        let too_much = Unreadable::TooMuch("bytes in a line", MOST_IN_LINE);
        assert_eq!(Scanner::default().scan(longer.as_bytes()), Err(too_much));
    }

    /// Of many short lines, the one that is too much is the first beyond, whether it has ended or
    /// not.
    #[test]
    fn a_reply_that_came_at_once_is_bounded_as_well() {
        let line = "+0123456789abcd\r\n";
        // With the last one, it would be whole.
        let lines = MOST_BYTES / line.len();
        let bytes = format!("*{lines}\r\n{}", line.repeat(lines - 1));
        let too_much = Err(Unreadable::TooMuch("bytes", MOST_BYTES));
        assert!(bytes.len() <= MOST_BYTES && bytes.len() + line.len() > MOST_BYTES);
        assert_eq!(Scanner::default().scan(bytes.as_bytes()), Ok(None));
        let ended = format!("{bytes}{line}");
        assert_eq!(Scanner::default().scan(ended.as_bytes()), too_much);
        let open = format!("{bytes}+{}", "x".repeat(line.len()));
        assert_eq!(Scanner::default().scan(open.as_bytes()), too_much);
    }
}

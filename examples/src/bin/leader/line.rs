//! What a replica says to its parent.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// One line of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) what: What,
    /// The fencing token of its term.
    pub(crate) token: u64,
    /// When, in microseconds since 1970: all processes have one clock.
    pub(crate) at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A term.
    Began,
    /// A mail is sent.
    Mail,
    /// A term has ended, or its body was stopped.
    Ended,
}

const WORDS: [(What, &str); 3] = [
    (What::Began, "began"),
    (What::Mail, "mail"),
    (What::Ended, "ended"),
];

impl Line {
    pub(crate) fn now(what: What, token: u64) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX);
        Self { what, token, at }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = WORDS.iter().find(|(what, _)| *what == self.what);
        let word = word.map_or("", |(_, word)| word);
        write!(f, "{word} {} {}", self.token, self.at)
    }
}

impl FromStr for Line {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let parse = || {
            let mut words = line.split(' ');
            let word = words.next()?;
            let (what, _) = WORDS.iter().find(|(_, one)| *one == word)?;
            Some(Self {
                what: *what,
                token: words.next()?.parse().ok()?,
                at: words.next()?.parse().ok()?,
            })
        };
        parse().ok_or_else(|| format!("not a line of a replica: {line:?}"))
    }
}

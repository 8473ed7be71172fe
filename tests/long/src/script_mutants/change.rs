//! The small mistakes that a line can be given.

use std::ops::Range;

use super::line::{depth, is_function, tokens};

/// The lines that are replaced, by something else or by nothing.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) lines: Range<usize>,
    pub(super) instead: Option<String>,
    pub(super) what: String,
}

impl Change {
    pub(super) fn applied(&self, lines: &[&str]) -> String {
        let mut changed: Vec<&str> = lines[..self.lines.start].to_vec();
        changed.extend(self.instead.as_deref());
        changed.extend(&lines[self.lines.end..]);
        changed.join("\n") + "\n"
    }
}

/// The deletions that begin on this line: it alone, or the block that it opens, or its statement
/// over several lines. Only the first that Lua compiles is a mutant.
pub(super) fn deletions(lines: &[&str], at: usize) -> Vec<Change> {
    if tokens(lines[at]).is_empty() {
        return Vec::new();
    }
    let deletion = |end: usize| Change {
        lines: at..end,
        instead: None,
        what: match end - at {
            1 => "deleted".to_owned(),
            count => format!("{count} lines deleted"),
        },
    };
    let mut deletions = vec![deletion(at + 1)];
    if depth(lines[at]) > 0 {
        if !is_function(lines[at]) {
            let mut open = 0;
            let block = lines[at..].iter().position(|line| {
                open += depth(line);
                open <= 0
            });
            deletions.extend(block.map(|last| deletion(at + last + 1)));
        }
    } else if lines[at].ends_with([',', '=', '{', '(']) {
        deletions.extend((at + 2..=lines.len().min(at + 4)).map(deletion));
    }
    deletions
}

/// The replacements of a word or sign. Only the first that Lua compiles is a mutant.
pub(super) fn swaps(lines: &[&str], at: usize) -> Vec<Vec<Change>> {
    let line = lines[at];
    let all = tokens(line);
    let swap = |token: &Range<usize>, other: &str| {
        let (before, after) = (&line[..token.start], &line[token.end..]);
        let old = &line[token.clone()];
        Change {
            lines: at..at + 1,
            instead: Some(format!("{before}{other}{after}")),
            what: match other {
                "" => format!("{old} dropped at {}", token.start + 1),
                _ => format!("{old} → {other} at {}", token.start + 1),
            },
        }
    };
    let mut swaps = Vec::new();
    for (number, token) in all.iter().enumerate() {
        let before = number.checked_sub(1).map(|n| &line[all[n].clone()]);
        let others: &[&str] = match &line[token.clone()] {
            "<" => &["<="],
            "<=" => &["<"],
            ">" => &[">="],
            ">=" => &[">"],
            "==" => &["~="],
            "~=" => &["=="],
            "and" => &["or"],
            "or" => &["and"],
            "not" => &[""],
            "+" => &["-"],
            // The sign of a number can only be dropped.
            "-" => &["+", ""],
            // The number of an argument or lock is not worth a mutant: another number names
            // something of another kind.
            "0" if before != Some("[") => &["1"],
            "1" if before != Some("[") => &["0"],
            _ => continue,
        };
        swaps.push(others.iter().map(|other| swap(token, other)).collect());
    }
    swaps
}

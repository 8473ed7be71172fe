//! The small mistakes that a line can be given.

use std::ops::Range;

use super::Language;
use super::line::{tokens, words};

/// The lines that are replaced, by something else or by nothing.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) lines: Range<usize>,
    pub(crate) instead: Option<String>,
    pub(crate) what: String,
}

impl Change {
    pub(crate) fn applied(&self, lines: &[&str]) -> String {
        let mut changed: Vec<&str> = lines[..self.lines.start].to_vec();
        changed.extend(self.instead.as_deref());
        changed.extend(&lines[self.lines.end..]);
        changed.join("\n") + "\n"
    }

    /// The line without these bytes of it, or with others for them.
    pub(crate) fn replaces(line: &str, at: usize, bytes: Range<usize>, other: &str) -> Self {
        let (before, after) = (&line[..bytes.start], &line[bytes.end..]);
        let (old, column) = (&line[bytes.clone()], bytes.start + 1);
        Self {
            lines: at..at + 1,
            instead: Some(format!("{before}{other}{after}")),
            what: match other {
                "" => format!("{old} dropped at {column}"),
                _ => format!("{old} → {other} at {column}"),
            },
        }
    }
}

/// All mistakes that begin on this line, each in the forms that it may have. Only the first of them
/// that the language takes is a mutant.
pub(crate) fn changes(language: &Language, lines: &[&str], at: usize) -> Vec<Vec<Change>> {
    let mut changes = vec![deletions(language, lines, at)];
    changes.extend(swaps(language, lines[at], at));
    changes
}

/// Of each mistake, the first form that the language takes, with the text that has it. The others
/// would be found without a test.
pub(crate) async fn taken(
    mistakes: Vec<Vec<Change>>,
    lines: &[&str],
    mut takes: impl AsyncFnMut(&str) -> Result<bool, String>,
) -> Result<Vec<(Change, String)>, String> {
    let mut taken = Vec::new();
    for forms in mistakes {
        for change in forms {
            let text = change.applied(lines);
            if takes(&text).await? {
                taken.push((change, text));
                break;
            }
        }
    }
    Ok(taken)
}

/// The line alone, or the block that it opens, or its statement over several lines.
fn deletions(language: &Language, lines: &[&str], at: usize) -> Vec<Change> {
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
    let depth = |line: &str| -> i32 {
        words(line)
            .map(|(word, before)| (language.opens)(word, before))
            .sum()
    };
    let mut deletions = vec![deletion(at + 1)];
    if depth(lines[at]) > 0 {
        if !words(lines[at]).any(|(word, _)| word == language.declares) {
            let mut open = 0;
            let block = lines[at..].iter().position(|line| {
                open += depth(line);
                open <= 0
            });
            deletions.extend(block.map(|last| deletion(at + last + 1)));
        }
    } else {
        deletions.extend((language.ends)(lines, at).map(deletion));
    }
    deletions
}

/// The replacements of a word or sign.
fn swaps(language: &Language, line: &str, at: usize) -> Vec<Vec<Change>> {
    let swaps = tokens(line).into_iter().zip(words(line));
    let swaps = swaps.map(|(token, (word, before))| {
        let others = (language.others)(word, before).iter();
        others
            .map(|other| Change::replaces(line, at, token.clone(), other))
            .collect()
    });
    swaps
        .filter(|forms: &Vec<Change>| !forms.is_empty())
        .collect()
}

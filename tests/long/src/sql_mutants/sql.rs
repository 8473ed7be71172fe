//! What of SQL and PL/pgSQL can be broken.

use std::ops::Range;

use crate::text_mutants::{Change, Language, other_signs, tokens};

pub(super) const SQL: Language = Language {
    opens,
    declares: "FUNCTION",
    ends,
    others,
};

fn opens(word: &str, before: Option<&str>) -> i32 {
    match word {
        // `END IF` ends one block.
        "IF" | "LOOP" | "CASE" if before == Some("END") => 0,
        "IF" | "LOOP" | "CASE" | "BEGIN" => 1,
        "END" => -1,
        _ => 0,
    }
}

fn ends(lines: &[&str], at: usize) -> Range<usize> {
    let last = lines[at..].iter().position(|line| line.ends_with(';'));
    match last {
        Some(more @ 1..) => at + more + 1..at + more + 2,
        _ => 0..0,
    }
}

fn others(word: &str, before: Option<&str>) -> &'static [&'static str] {
    match word {
        "=" => &["<>"],
        "<>" => &["="],
        "AND" => &["OR"],
        "OR" => &["AND"],
        "NOT" => &[""],
        "NULL" if before == Some("IS") => &["NOT NULL"],
        "true" => &["false"],
        "false" => &["true"],
        "greatest" => &["least"],
        "least" => &["greatest"],
        "min" => &["max"],
        "max" => &["min"],
        // Of a row that is only to be there, nothing is read.
        "0" | "1" if matches!(before, Some("SELECT" | "PERFORM")) => &[],
        "0" => &["1"],
        "1" => &["0"],
        _ => other_signs(word),
    }
}

/// A row is read and not locked.
pub(super) fn unlocked(line: &str, at: usize) -> Option<Change> {
    let tokens = tokens(line);
    let word = |number: usize| tokens.get(number).map(|token| &line[token.clone()]);
    let locks = |number: &usize| {
        word(*number) == Some("FOR")
            && matches!(word(*number + 1), Some("UPDATE" | "NO" | "KEY" | "SHARE"))
    };
    let first = (0..tokens.len()).find(locks)?;
    let of_clause = |token: &&Range<usize>| {
        matches!(
            &line[(*token).clone()],
            "FOR" | "NO" | "KEY" | "UPDATE" | "SHARE" | "SKIP" | "LOCKED"
        )
    };
    let last = tokens[first..].iter().take_while(of_clause).last()?;
    Some(Change::replaces(
        line,
        at,
        tokens[first].start..last.end,
        "",
    ))
}

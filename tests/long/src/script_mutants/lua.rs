//! What of Lua can be broken.

use std::ops::Range;

use crate::text_mutants::{Language, other_signs};

pub(super) const LUA: Language = Language {
    opens,
    declares: "function",
    ends,
    others,
};

fn opens(word: &str, _: Option<&str>) -> i32 {
    match word {
        "if" | "for" | "while" | "function" => 1,
        "end" => -1,
        _ => 0,
    }
}

fn ends(lines: &[&str], at: usize) -> Range<usize> {
    match lines[at].ends_with([',', '=', '{', '(']) {
        true => at + 2..lines.len().min(at + 4) + 1,
        false => 0..0,
    }
}

fn others(word: &str, before: Option<&str>) -> &'static [&'static str] {
    match word {
        "==" => &["~="],
        "~=" => &["=="],
        "and" => &["or"],
        "or" => &["and"],
        "not" => &[""],
        // The number of an argument or lock is not worth a mutant: another number names something
        // of another kind.
        "0" if before != Some("[") => &["1"],
        "1" if before != Some("[") => &["0"],
        _ => other_signs(word),
    }
}

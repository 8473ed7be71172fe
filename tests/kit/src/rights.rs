//! What README says a client needs to be allowed.

const README: &str = include_str!("../../../README.md");
const RULE: &str = "ACL SETUSER app ";

/// The rights that README documents for one use: what stands behind its rule as a comment, and the commands.
///
/// # Panics
/// If README has no such rule.
#[must_use]
pub fn documented_rights(of: &str) -> Vec<&'static str> {
    let rule = README
        .lines()
        .filter_map(|line| line.trim().strip_prefix(RULE)?.split_once('#'))
        .find(|(_, comment)| comment.trim() == of);
    let Some((rule, _)) = rule else {
        panic!("README has no rule for {of:?}");
    };
    let rights = rule.split_whitespace();
    rights.filter(|word| word.starts_with('+')).collect()
}

/// All of README's rules together.
#[must_use]
pub fn all_documented_rights() -> Vec<&'static str> {
    let rules = README
        .lines()
        .filter_map(|line| line.trim().strip_prefix(RULE));
    let words = rules.flat_map(|rule| {
        rule.split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
    });
    words.filter(|word| word.starts_with('+')).collect()
}

//! What the page about Redis says a client needs to be allowed.

const PAGE: &str = include_str!("../../../lock-runtime/docs/redis.md");
const RULE: &str = "ACL SETUSER app ";

/// The rights that the page documents for one use: what stands behind its rule as a comment, and
/// the commands.
///
/// # Panics
/// If it has no such rule.
#[must_use]
pub fn documented_rights(of: &str) -> Vec<&'static str> {
    let rule = PAGE
        .lines()
        .filter_map(|line| line.trim().strip_prefix(RULE)?.split_once('#'))
        .find(|(_, comment)| comment.trim() == of);
    let Some((rule, _)) = rule else {
        panic!("lock-runtime/docs/redis.md has no rule for {of:?}");
    };
    let rights = rule.split_whitespace();
    rights.filter(|word| word.starts_with('+')).collect()
}

/// All of its rules together.
#[must_use]
pub fn all_documented_rights() -> Vec<&'static str> {
    let rules = PAGE
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

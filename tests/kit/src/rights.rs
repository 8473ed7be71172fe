//! The permissions that a client needs, according to the page about Redis.

use crate::redis_server::version;

const PAGE: &str = include_str!("../../../lock-runtime/docs/redis.md");
const RULE: &str = "ACL SETUSER app ";

/// The permissions that the page documents for one use. `of` is the comment after its rule.
///
/// # Panics
/// If the page has no such rule.
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

/// The permissions of all rules together, as far as this server knows them.
#[must_use]
pub fn all_documented_rights() -> Vec<&'static str> {
    let rules = PAGE
        .lines()
        .filter_map(|line| line.trim().strip_prefix(RULE));
    // A rule with a command that the server does not know is refused.
    let is_of_7 = |rule: &str| rule.contains("+spublish") || rule.contains("+sunsubscribe");
    let is_known = |rule: &&str| version() >= (7, 0) || !is_of_7(rule);
    let words = rules.filter(is_known).flat_map(|rule| {
        rule.split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
    });
    words.filter(|word| word.starts_with('+')).collect()
}

//! The permissions that a client needs, according to the page about Redis.

use crate::redis_version;

const PAGE: &str = include_str!("../../../lock-runtime/docs/redis.md");
const RULE: &str = "ACL SETUSER app ";

/// Each comment of the page, and the permissions in the rules below it.
fn blocks() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut blocks = Vec::new();
    for line in PAGE.lines() {
        if let Some(of) = line.strip_prefix("# ") {
            blocks.push((of, Vec::new()));
        } else if let (Some(rule), Some((_, rights))) = (line.strip_prefix(RULE), blocks.last_mut())
        {
            let words = rule.split_whitespace();
            rights.extend(words.filter(|word| word.starts_with('+')));
        }
    }
    blocks
}

/// The permissions that the page documents for one use. `of` is the comment above its rules.
///
/// # Panics
/// If the page has no such rule.
#[must_use]
pub fn documented_rights(of: &str) -> Vec<&'static str> {
    let found = blocks().into_iter().find(|(comment, _)| *comment == of);
    let rights = found.map(|(_, rights)| rights).unwrap_or_default();
    assert!(
        !rights.is_empty(),
        "lock-runtime/docs/redis.md has no rule for {of:?}"
    );
    rights
}

/// The permissions of all rules together, as far as this server knows them.
#[must_use]
pub fn all_documented_rights() -> Vec<&'static str> {
    let rules = blocks().into_iter().map(|(_, rights)| rights);
    // A rule with a command that the server does not know is refused.
    let is_of_7 = |right: &&str| matches!(*right, "+spublish" | "+sunsubscribe");
    let is_known = |rights: &Vec<_>| redis_version() >= (7, 0) || !rights.iter().any(is_of_7);
    rules.filter(is_known).flatten().collect()
}

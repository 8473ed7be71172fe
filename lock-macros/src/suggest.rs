//! The nearest name to a misspelt one.

/// The candidate most likely meant, if one is near enough to suggest.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            let distance = distance(&word, &other);
            let half_typed = word.len() >= 3 && other.starts_with(&word);
            let limit = (word.chars().count().max(other.chars().count()) / 3).max(1);
            (half_typed || distance <= limit).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "`a`, `b` and `c`", for the end of a message.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    join(&names, "and")
}

/// "a, b and c", with this conjunction.
pub(crate) fn join(words: &[String], conjunction: &str) -> String {
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
    }
}

/// Edits from one word to the other; two swapped neighbours are one edit.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let unequal = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + unequal);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{distance, list, nearest};
    use proptest::prelude::*;

    const NAMES: [&str; 5] = ["lease", "renew", "wait", "fence", "product_id"];

    #[test]
    fn finds_what_was_meant() {
        for (word, meant) in [
            ("leese", Some("lease")),
            ("lesae", Some("lease")),
            ("LEASE", Some("lease")),
            ("lea", Some("lease")),
            ("prodct_id", Some("product_id")),
            ("product", Some("product_id")),
            ("wiat", Some("wait")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, NAMES), meant, "{word}");
        }
    }

    #[test]
    fn swapped_neighbours_are_one_edit() {
        assert_eq!(distance("wiat", "wait"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn lists_read_like_a_sentence() {
        assert_eq!(list([]), "");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
    }

    proptest! {
        #[test]
        fn a_name_is_nearest_to_itself(word in "[a-z_]{1,12}") {
            let candidates = [word.as_str(), "zzzzzzzzzzzzzzzz"];
            prop_assert_eq!(nearest(&word, candidates), Some(word.as_str()));
        }
    }
}

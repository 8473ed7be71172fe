//! The mutants that no test can be expected to find, each with the reason.

use crate::mutants::Known;

pub(super) const KNOWN: &[Known] = &[
    (
        "acquire",
        "last = CASE WHEN fences > 0",
        "> → >=",
        [1, 1],
        "without a token, nothing is added to the last one",
    ),
    (
        "acquire",
        "turn := CASE WHEN mine",
        "1 → 0",
        [1, 1],
        "from here on it is only compared with 2",
    ),
    (
        "acquire",
        "IF queued OR (p IS NOT NULL",
        "AND → OR",
        [1, 1],
        "a hand-over of what is held, or without places, does nothing",
    ),
    (
        "acquire_all",
        "FOR i IN 1 .. cardinality(names) LOOP",
        "1 → 0",
        [3, 3],
        "of no name there is nothing to tidy",
    ),
    (
        "rate_at_most",
        "EXIT;",
        "deleted",
        [1, 1],
        "lines before it ask for no later time, and nothing is left over then",
    ),
];

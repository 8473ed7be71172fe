//! The mutants that no test can be expected to find, each with the reason.

use crate::mutants::Known;

pub(super) const KNOWN: &[Known] = &[(
    "rate_at_most",
    "EXIT;",
    "deleted",
    [1, 1],
    "lines before it ask for no later time, and nothing is left over then",
)];

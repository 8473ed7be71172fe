//! The mutants that no test can be expected to find, each with the reason.

use crate::mutants::Known;

pub(super) const KNOWN: &[Known] = &[];

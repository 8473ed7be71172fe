//! Which tests are tried on a mutant of the functions.

use crate::mutants::Stage;

/// A few find most of what all of them find.
const FEW: &[(&str, &str)] = &[("LOCK_DRIFT_COMMANDS", "1500")];

/// One after the other, the quick ones first.
pub(super) fn all(quick: bool) -> Vec<Stage> {
    let verbs = [
        "postgres::verbs::",
        "postgres::shares::",
        "postgres::multi_verbs::",
        "postgres::latch_verbs::",
        "postgres::rates::",
    ];
    let mut stages = vec![
        Stage::new("postgres", &["drift"]).with(FEW),
        Stage::new("conformance", &verbs).threads(4).apart(),
    ];
    if !quick {
        stages.extend([
            Stage::new("postgres", &[]).threads(4).apart(),
            Stage::new("conformance", &["postgres::"])
                .threads(6)
                .apart(),
        ]);
    }
    stages
}

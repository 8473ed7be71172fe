//! Which tests are tried on a mutant of a function.

use crate::mutants::Stage;

/// A few find most of what all of them find.
const FEW: &[(&str, &str)] = &[("LOCK_DRIFT_COMMANDS", "1500")];

/// What is run on a mutant of this function, one stage after the other. First come the tests of
/// what it is for.
pub(super) fn stages(function: &str, quick: bool) -> Vec<Stage> {
    let conformance = |names: &[&str]| Stage::new("conformance", names).threads(6);
    let postgres = |names: &[&str]| Stage::new("postgres", names).threads(4);
    let mut stages = vec![postgres(&[moments(function)])];
    stages.extend(match function {
        "rate" | "rate_at_most" => vec![conformance(&["postgres::rates::"])],
        name if name.starts_with("latch") || name == "remember" => {
            vec![conformance(&[
                "postgres::latch_verbs::",
                "postgres::latch::",
            ])]
        }
        "sweep" | "sweeps_each" | "leave" => {
            vec![
                postgres(&["growth::", "set_up::"]),
                conformance(&["postgres::leaving::"]),
            ]
        }
        "lock_check" | "fence" => {
            vec![
                postgres(&["checked::"]),
                conformance(&["postgres::fencing::"]),
            ]
        }
        "inspect" | "holders" | "force_release" => vec![conformance(&[
            "postgres::verbs::",
            "postgres::shares::",
            "postgres::holders::",
            "postgres::views::",
        ])],
        _ => vec![
            Stage::new("postgres", &["drift"]).with(FEW),
            postgres(&["functions::", "first::"]),
            conformance(&[
                "postgres::verbs::",
                "postgres::shares::",
                "postgres::multi_verbs::",
            ]),
        ],
    });
    if !quick {
        stages.extend([postgres(&[]), conformance(&["postgres::"])]);
    }
    stages
}

/// The tests of this function alone, at times that they set.
fn moments(function: &str) -> &'static str {
    match function {
        "rate" | "rate_at_most" => "moments::rates::",
        name if name.starts_with("latch") || name == "remember" => "moments::latches::",
        "sweep" | "sweeps_each" | "serves" => "moments::sweeps::",
        "hand_over" | "tidy" | "is_lock" => "moments::turns::",
        "fence" | "inspect" | "holders" | "lock_check" => "moments::looks::",
        "release_first" | "release" | "shrink" | "abandon" | "force_release" | "renew"
        | "leave" => "moments::ends::",
        _ => "moments::acquire::",
    }
}

/// Everything that is tried on any mutant.
pub(super) fn all(quick: bool) -> Vec<Stage> {
    let functions = [
        "rate",
        "latch_set",
        "sweep",
        "fence",
        "inspect",
        "tidy",
        "release",
    ];
    let mut stages: Vec<Stage> = functions.iter().flat_map(|one| stages(one, true)).collect();
    stages.extend(self::stages("acquire", quick));
    stages
}

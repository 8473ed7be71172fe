//! Which tests are tried on a script's mutants.

use crate::mutants::Stage;

/// The embedded store runs no script.
const WITHOUT_SCRIPTS: &[&str] = &["memory::", "sqlite::", "postgres::"];
/// What each verb does, on one server and on a quorum: other set-ups run the same scripts.
const ON_ONE: &[&str] = &[
    "redis::verbs::",
    "redis::shares::",
    "redis::multi_verbs::",
    "quorum::verbs::",
    "quorum::multi_verbs::",
];
/// A tenth finds most of what all of them find.
const FEW: &[(&str, &str)] = &[("LOCK_DRIFT_COMMANDS", "5000")];

/// What is run on a mutant of a file, one stage after the other. A test that does not run the
/// script is not worth its time.
pub(super) fn stages(file: &str, quick: bool) -> Vec<Stage> {
    let stage = |program, names: &[&str]| Stage::new(program, names).skipping(WITHOUT_SCRIPTS);
    // Single scripts at times that the test sets.
    let alone = || stage("scripts", &[]);
    let (mut stages, longer) = match file {
        "rate.lua" => (
            vec![
                stage("rate_model", &[]),
                stage("faults", &["rates::a_bucket", "rates::a_clock"]),
            ],
            vec![
                stage("conformance", &["rates::"]),
                stage("drift", &[]),
                stage("faults", &["rates::"]),
            ],
        ),
        name if name.starts_with("latch") => (
            vec![
                alone(),
                stage("conformance", &["stored_latch::", "latch_verbs::"]),
                stage("faults", &["latch::a_key", "latch::a_full"]),
            ],
            vec![
                stage("conformance", &["latch"]),
                stage("drift", &[]),
                stage("faults", &["latch::"]),
            ],
        ),
        // Alone, and then beside those who share its locks.
        "../layouts/shedlock.lua" => (
            vec![alone(), stage("conformance", &["shedlock::"])],
            vec![stage("shedlock", &["on_redis::"])],
        ),
        "../layouts/timestamp.lua" => (
            vec![alone(), stage("conformance", &["timestamp::"])],
            vec![stage("timestamp", &[])],
        ),
        "limit.lua" => (
            vec![alone(), stage("conformance", &["limits::"])],
            vec![stage("faults", &["rates::"])],
        ),
        // It tells whose clients a revocation asks.
        "holders.lua" => (
            vec![
                alone(),
                stage(
                    "conformance",
                    &["redis::revoking::", "redis::verbs::", "redis::shares::"],
                ),
            ],
            vec![stage("faults", &["denied::", "rights::"])],
        ),
        // Beside clients without a queue.
        "leave_free.lua" => (
            vec![alone(), stage("faults", &["foreign::"])],
            vec![stage("faults", &["denied::", "rights::"])],
        ),
        "version.lua" => (
            vec![alone(), stage("versions", &["redis_scripts::"])],
            Vec::new(),
        ),
        // What a user may do is asked for at each login, and before a diagnosis.
        "rights.lua" | "required_rights.lua" => (
            vec![alone(), stage("topology", &["diagnosis::"])],
            vec![stage("faults", &["denied::", "rights::"])],
        ),
        name if name.starts_with("quorum") => (
            vec![
                alone(),
                stage("conformance", &["quorum::verbs::", "quorum::multi_verbs::"]).threads(8),
            ],
            vec![
                stage("conformance", &["quorum::"]).threads(12),
                stage("topology", &["quorum"]).threads(6),
            ],
        ),
        _ => (
            vec![
                alone(),
                stage("conformance", &["stored::"]),
                stage("conformance", ON_ONE).threads(8),
                stage("drift", &[]).with(FEW),
            ],
            vec![
                // The common cases have a short way, which saves commands and does the same.
                stage("cost", &[]),
                stage("drift", &[]),
                stage(
                    "faults",
                    &[
                        "denied::",
                        "rights::",
                        "server::",
                        "rw_lock::",
                        "semaphore::",
                    ],
                ),
                stage("conformance", &["redis::"]).threads(12),
            ],
        ),
    };
    if !quick {
        stages.extend(longer);
    }
    stages
}

/// Everything that is tried on any mutant.
pub(super) fn all(quick: bool) -> Vec<Stage> {
    let files = [
        "rate.lua",
        "limit.lua",
        "latch.lua",
        "holders.lua",
        "leave_free.lua",
        "rights.lua",
        "quorum_take.lua",
        "lib.lua",
        "../layouts/shedlock.lua",
        "../layouts/timestamp.lua",
    ];
    files.iter().flat_map(|file| stages(file, quick)).collect()
}

//! The test programs, and which of their tests are tried on a mutant.

use crate::mutants::Stage;

/// What cargo builds beside the options of each build.
pub(super) const BUILT: [&str; 12] = [
    "-p",
    "lock-runtime",
    "-p",
    "lock-store-redis",
    "-p",
    "lock-simulation",
    "-p",
    "lock-timetable",
    "-p",
    "lock-tests",
    "--features",
    "lock-runtime/__internals,lock-runtime/metrics,lock-runtime/tls",
];

/// Simulated hours take a tenth of the time.
pub(super) const OPTIMISED: [&str; 6] = [
    "--config",
    "profile.dev.package.lock-runtime.opt-level=2",
    "--config",
    "profile.dev.package.lock-store.opt-level=2",
    "--config",
    "profile.dev.package.lock-simulation.opt-level=2",
];

pub(super) const OF_ENGINE: &[&str] = &[
    "timetable",
    "lock_runtime",
    "simulation",
    "conformance",
    "late_place",
    "standing_still",
    "suspend",
    "undo_storm",
    "observe",
    "metrics",
    "test_util",
    "global_client",
    "multi_lock_races",
    "cost",
    "last_clone",
    "program_end",
    "faults",
    "topology",
];

/// One after the other, the quick ones first.
pub(super) fn of_engine(quick: bool) -> Vec<Stage> {
    let mut stages = vec![
        Stage::new("timetable", &[]),
        Stage::new("lock_runtime", &[]),
        Stage::new("simulation", &["seeds_show"]).with(&[("LOCK_SIM_SEEDS", "0..200")]),
        Stage::new("late_place", &[]),
        Stage::new("standing_still", &[]),
        Stage::new("suspend", &[]),
        Stage::new("undo_storm", &[]),
        Stage::new("test_util", &[]),
        Stage::new("simulation", &["found::", "cancellation::simulated"]),
        Stage::new("conformance", &["memory::"]).threads(12).apart(),
        Stage::new("global_client", &[]),
    ];
    if !quick {
        stages.extend([
            Stage::new("last_clone", &[]),
            Stage::new("program_end", &["in_redis", "the_last_drop"]),
            Stage::new("observe", &[]).threads(6).apart(),
            Stage::new("metrics", &[]).threads(6).apart(),
            Stage::new("multi_lock_races", &[]),
            Stage::new("cost", &[]).threads(6).apart(),
            Stage::new("simulation", &["seeds_show"]).with(&[("LOCK_SIM_SEEDS", "200..1200")]),
            Stage::new("faults", &[]).threads(8).apart(),
            Stage::new("topology", &[]).threads(4).apart(),
        ]);
    }
    stages
}

pub(super) const OF_CONNECTION: &[&str] =
    &["lock_store_redis", "conformance", "faults", "topology"];

/// One after the other, the quick ones first.
pub(super) fn of_connection(quick: bool) -> Vec<Stage> {
    let verbs = [
        "redis::verbs::",
        "redis::outages::",
        "redis::cancellation::",
    ];
    let mut stages = vec![
        Stage::new("lock_store_redis", &["resp::"]),
        Stage::new("conformance", &verbs).threads(12).apart(),
    ];
    if !quick {
        stages.extend([
            Stage::new("conformance", &["redis::"]).threads(12).apart(),
            Stage::new("faults", &[]).threads(8).apart(),
            Stage::new("topology", &[]).threads(4).apart(),
        ]);
    }
    stages
}

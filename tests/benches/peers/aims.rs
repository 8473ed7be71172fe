//! The aims, as ratios between figures of one run, and whether they were reached.

use crate::figures::{
    ALLOCATIONS, CLIENT, CYCLES, LONGEST, P50, P99, PROCESS_MAX, PROCESS_MIN, READ, Results,
    TASK_MAX, TASK_MIN,
};
use crate::plan;
use crate::report;

struct Aim {
    workload: &'static str,
    what: &'static str,
    limit: Limit,
    measured: fn(&Results, &str) -> Option<f64>,
}

#[derive(Clone, Copy)]
enum Limit {
    AtLeast(f64),
    AtMost(f64),
}
use Limit::{AtLeast, AtMost};

/// Aims of several workloads.
const FENCED: &str = "fenced, to the bare loop fenced";
const ALLOCATED: &str = "allocations a cycle, to the bare loop's";

const AIMS: [Aim; 46] = [
    aim("solo", "to the bare loop", AtLeast(1.1), to_bare),
    aim("solo", "commands a cycle", AtMost(2.0), |all, w| {
        all.median(w, "ours", "commands/cycle")
    }),
    aim("many", "to the bare loop", AtLeast(1.2), to_bare),
    aim(
        "many",
        "`fair`, to the bare loop",
        AtLeast(0.8),
        |all, w| to(all, w, "ours-fair", "bare"),
    ),
    aim(
        "many",
        "with metrics, to without",
        AtLeast(0.97),
        |all, w| to(all, w, "ours-observed", "ours"),
    ),
    aim(
        "many",
        "client µs a cycle, to the bare loop's",
        AtMost(0.8),
        |all, w| Some(all.median(w, "ours", CLIENT)? / all.median(w, "bare", CLIENT)?),
    ),
    aim(
        "many",
        "to the best other library",
        AtLeast(1.2),
        |all, w| Some(all.median(w, "ours", CYCLES)? / best(all, w, false)?),
    ),
    aim(
        "many",
        "`layout=redisson`, to this library's own layout",
        AtLeast(0.7),
        |all, w| to(all, w, "ours-redisson", "ours"),
    ),
    aim("many", FENCED, AtLeast(1.4), fenced_to_bare),
    aim("many", "commands in a read", AtLeast(12.0), |all, w| {
        all.median(w, "ours", READ)
    }),
    aim("many", ALLOCATED, AtMost(2.0), allocations_to_bare),
    aim("many-cluster", "to the bare loop", AtLeast(1.1), to_bare),
    aim("many-cluster", FENCED, AtLeast(0.85), fenced_to_bare),
    aim("many-cluster", ALLOCATED, AtMost(2.0), allocations_to_bare),
    aim("many-replicas", "to the bare loop", AtLeast(1.1), to_bare),
    aim("many-replicas", FENCED, AtLeast(0.85), fenced_to_bare),
    aim("many-replicas", ALLOCATED, AtMost(2.0), allocations_to_bare),
    aim(
        "hot",
        "to the best other, the bare loop included",
        AtLeast(30.0),
        to_best,
    ),
    aim(
        "hot",
        "largest to smallest share of a task",
        AtMost(2.0),
        |all, w| Some(all.median(w, "ours", TASK_MAX)? / all.median(w, "ours", TASK_MIN)?),
    ),
    aim(
        "hot",
        "p99 to the best of those that serve all tasks",
        AtMost(0.05),
        |all, w| Some(all.median(w, "ours", P99)? / least_p99(all, w)?),
    ),
    aim(
        "hot4",
        "to the best other, the bare loop included",
        AtLeast(20.0),
        to_best,
    ),
    aim(
        "hot4",
        "smallest share of a process",
        AtLeast(0.8),
        |all, w| all.median(w, "ours", PROCESS_MIN),
    ),
    aim(
        "hot4",
        "largest share of a process",
        AtMost(1.2),
        |all, w| all.median(w, "ours", PROCESS_MAX),
    ),
    aim(
        "hot4",
        "p99 to the best of those that serve all tasks",
        AtMost(0.1),
        |all, w| Some(all.median(w, "ours", P99)? / least_p99(all, w)?),
    ),
    aim(
        "hot4",
        "`fair` to the best other, the bare loop included",
        AtLeast(1.1),
        |all, w| Some(all.median(w, "ours-fair", CYCLES)? / best(all, w, true)?),
    ),
    aim(
        "hot4",
        "`fair` to the hand-over alone",
        AtLeast(0.85),
        |all, w| to(all, w, "ours-fair", "chain"),
    ),
    aim(
        "hot4",
        "two processes of `layout=redisson` beside two of Redisson, to four of Redisson",
        AtLeast(1.0),
        |all, w| to(all, w, "ours-beside-redisson", "redisson"),
    ),
    aim(
        "hot4",
        "`fair` to Redisson's fair lock",
        AtLeast(8.0),
        |all, w| to(all, w, "ours-fair", "redisson-fair"),
    ),
    aim(
        "hot4",
        "`fair`: p99 to Redisson's fair lock",
        AtMost(0.1),
        |all, w| Some(all.median(w, "ours-fair", P99)? / all.median(w, "redisson-fair", P99)?),
    ),
    aim(
        "sale",
        "to the work without a lock",
        AtLeast(0.9),
        |all, w| to(all, w, "ours", "no-lock"),
    ),
    aim(
        "sale4",
        "to the work without a lock",
        AtLeast(0.9),
        |all, w| to(all, w, "ours", "no-lock"),
    ),
    aim(
        "sale4",
        "smallest share of a process",
        AtLeast(0.8),
        |all, w| all.median(w, "ours", PROCESS_MIN),
    ),
    aim(
        "sale4",
        "largest share of a process",
        AtMost(1.2),
        |all, w| all.median(w, "ours", PROCESS_MAX),
    ),
    aim(
        "handoff",
        "p50 to a command's round trip",
        AtMost(1.5),
        |all, w| Some(all.median(w, "ours", P50)? / all.median(w, "no-lock", P50)?),
    ),
    aim(
        "handoff",
        "p50 to a command's round trip, `fair`",
        AtMost(1.5),
        |all, w| Some(all.median(w, "ours-fair", P50)? / all.median(w, "no-lock", P50)?),
    ),
    aim("held", "commands/s", AtMost(10.0), |all, w| {
        all.median(w, "ours", "commands/s")
    }),
    aim("held", "client % of a core", AtMost(1.0), |all, w| {
        all.median(w, "ours", "client % of a core")
    }),
    aim("crowd", "commands a hand-off", AtMost(2.0), |all, w| {
        all.median(w, "ours", "commands/cycle")
    }),
    aim(
        "crowd",
        "commands a hand-off, `fair`",
        AtMost(2.0),
        |all, w| all.median(w, "ours-fair", "commands/cycle"),
    ),
    aim("crowd", "bytes a waiter", AtMost(1300.0), |all, w| {
        all.median(w, "ours", "bytes a waiter")
    }),
    aim(
        "crowd",
        "bytes a waiter, `fair`",
        AtMost(2500.0),
        |all, w| all.median(w, "ours-fair", "bytes a waiter"),
    ),
    aim(
        "memory",
        "to `tokio::sync::Mutex`",
        AtLeast(0.1),
        |all, w| to(all, w, "ours", "mutex"),
    ),
    aim("attribute", "to `run()`", AtLeast(0.98), |all, w| {
        all.median(w, "ours", "attribute / run()")
    }),
    // Not an aim, but good to know: whether the longest wait agrees with p99.
    aim(
        "hot",
        "longest wait to the best of those that serve all tasks",
        AtMost(0.05),
        |all, w| Some(all.median(w, "ours", LONGEST)? / least(all, w, LONGEST)?),
    ),
    aim(
        "hot4",
        "longest wait to the best of those that serve all tasks",
        AtMost(0.1),
        |all, w| Some(all.median(w, "ours", LONGEST)? / least(all, w, LONGEST)?),
    ),
    aim(
        "hot",
        "fenced, to the best other, the bare loop included",
        AtLeast(20.0),
        |all, w| Some(all.median(w, "ours-fenced", CYCLES)? / best(all, w, true)?),
    ),
];

const fn aim(
    workload: &'static str,
    what: &'static str,
    limit: Limit,
    measured: fn(&Results, &str) -> Option<f64>,
) -> Aim {
    Aim {
        workload,
        what,
        limit,
        measured,
    }
}

/// A table, without the aims that have no figures in this run.
pub(crate) fn markdown(results: &Results) -> String {
    let mut rows = vec![
        ["aim", "wanted", "measured", "reached"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for aim in &AIMS {
        let Some(measured) = (aim.measured)(results, aim.workload) else {
            continue;
        };
        // A stray command among a hundred thousand does not count as a third command.
        let rounded = (measured * 1000.0).round() / 1000.0;
        let (wanted, reached) = match aim.limit {
            AtLeast(limit) => (format!("≥ {limit}"), rounded >= limit),
            AtMost(limit) => (format!("≤ {limit}"), rounded <= limit),
        };
        let reached = if reached { "yes" } else { "no" };
        let what = format!("{}: {}", aim.workload, aim.what);
        rows.push(vec![
            what,
            wanted,
            report::number(measured),
            reached.to_owned(),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("### Aims\n\n{}", report::table(&rows))
}

/// Cycles as a ratio.
fn to(all: &Results, workload: &str, ours: &str, other: &str) -> Option<f64> {
    Some(all.median(workload, ours, CYCLES)? / all.median(workload, other, CYCLES)?)
}

fn to_bare(all: &Results, workload: &str) -> Option<f64> {
    to(all, workload, "ours", "bare")
}

fn fenced_to_bare(all: &Results, workload: &str) -> Option<f64> {
    to(all, workload, "ours-fenced", "bare-fenced")
}

fn allocations_to_bare(all: &Results, workload: &str) -> Option<f64> {
    Some(all.median(workload, "ours", ALLOCATIONS)? / all.median(workload, "bare", ALLOCATIONS)?)
}

fn to_best(all: &Results, workload: &str) -> Option<f64> {
    Some(all.median(workload, "ours", CYCLES)? / best(all, workload, true)?)
}

/// The other libraries' names.
fn others<'a>(all: &'a Results, workload: &str, bare: bool) -> impl Iterator<Item = &'a str> {
    let measured = all
        .workloads
        .iter()
        .find(|measured| measured.name == workload);
    let libraries = measured
        .into_iter()
        .flat_map(|measured| &measured.libraries);
    libraries
        .map(|one| one.name.as_str())
        .filter(move |name| plan::is_peer(name) || (bare && name.starts_with("bare")))
}

fn best(all: &Results, workload: &str, bare: bool) -> Option<f64> {
    others(all, workload, bare)
        .filter_map(|name| all.median(workload, name, CYCLES))
        .max_by(f64::total_cmp)
}

fn least_p99(all: &Results, workload: &str) -> Option<f64> {
    least(all, workload, P99)
}

/// Among the libraries in which every task got half its share.
fn least(all: &Results, workload: &str, figure: &str) -> Option<f64> {
    others(all, workload, true)
        .filter(|name| {
            all.median(workload, name, TASK_MIN)
                .is_some_and(|share| share >= 0.5)
        })
        .filter_map(|name| all.median(workload, name, figure))
        .min_by(f64::total_cmp)
}

//! The measurements: one round's figures, several rounds' medians, and their file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that one run of the program found out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: BTreeMap<String, String>,
    /// The command line of the run.
    pub(crate) command: String,
    pub(crate) workloads: Vec<Measured>,
    /// The libraries that could not take part, and why.
    pub(crate) skipped: Vec<String>,
}

/// One workload, all libraries.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) reference: String,
    pub(crate) libraries: Vec<Contender>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) median: Figures,
    pub(crate) rounds: Vec<Figures>,
}

/// Names and values, such as `cycles/s`.
pub(crate) type Figures = BTreeMap<String, f64>;

/// What one process reports of itself.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Report {
    pub(crate) seconds: f64,
    /// Cycles of each task.
    pub(crate) tasks: Vec<u64>,
    /// From asking to holding. The key is the bucket `floor(50 ln nanoseconds)`, the value a count.
    #[serde(default)]
    pub(crate) waits: BTreeMap<u32, u64>,
    /// Cycles that ended too late to count, but cost as much as the others.
    #[serde(default)]
    pub(crate) late: u64,
    #[serde(default)]
    pub(crate) longest_ns: f64,
    #[serde(default)]
    pub(crate) more: Figures,
}

pub(crate) const CYCLES: &str = "cycles/s";
pub(crate) const READ: &str = "commands/read";
pub(crate) const ALLOCATIONS: &str = "allocations/cycle";
pub(crate) const CLIENT: &str = "client µs/cycle";
pub(crate) const P50: &str = "p50 ms";
pub(crate) const P99: &str = "p99 ms";
pub(crate) const LONGEST: &str = "longest ms";
pub(crate) const TASK_MIN: &str = "task min";
pub(crate) const TASK_MAX: &str = "task max";
pub(crate) const PROCESS_MIN: &str = "process min";
pub(crate) const PROCESS_MAX: &str = "process max";

/// The allocations of all processes, if they were counted.
pub(crate) fn allocations(reports: &[Report]) -> Option<f64> {
    let counts = reports.iter().map(|report| report.more.get("allocations"));
    counts.sum()
}

/// All cycles that cost something.
pub(crate) fn paid(reports: &[Report]) -> f64 {
    let counts = reports
        .iter()
        .map(|report| report.tasks.iter().sum::<u64>() + report.late);
    counts.sum::<u64>() as f64
}

/// The figures of one library's processes together.
pub(crate) fn together(reports: &[Report]) -> Figures {
    let mut figures = Figures::new();
    let mut waits = BTreeMap::<u32, u64>::new();
    for report in reports {
        for (bucket, count) in &report.waits {
            *waits.entry(*bucket).or_default() += count;
        }
        figures.extend(report.more.clone());
    }
    let tasks: Vec<f64> = reports
        .iter()
        .flat_map(|report| report.tasks.iter().map(|cycles| *cycles as f64))
        .collect();
    let processes: Vec<f64> = reports
        .iter()
        .map(|report| report.tasks.iter().sum::<u64>() as f64)
        .collect();
    let mut set = |name: &str, value: f64| _ = figures.insert(name.to_owned(), value);
    if !tasks.is_empty() {
        let seconds = reports
            .iter()
            .map(|report| report.seconds)
            .fold(0.0, f64::max);
        set(CYCLES, tasks.iter().sum::<f64>() / seconds);
    }
    if tasks.len() > 1 {
        let (least, most) = shares(&tasks);
        set(TASK_MIN, least);
        set(TASK_MAX, most);
    }
    if processes.len() > 1 {
        let (least, most) = shares(&processes);
        set(PROCESS_MIN, least);
        set(PROCESS_MAX, most);
    }
    if !waits.is_empty() {
        set(P50, quantile(&waits, 0.5));
        set(P99, quantile(&waits, 0.99));
        let longest = reports.iter().map(|report| report.longest_ns);
        set(LONGEST, longest.fold(0.0, f64::max) / 1e6);
    }
    figures
}

/// The smallest and the largest, as parts of an even share.
fn shares(counts: &[f64]) -> (f64, f64) {
    let even = (counts.iter().sum::<f64>() / counts.len() as f64).max(f64::MIN_POSITIVE);
    let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = counts.iter().copied().fold(0.0, f64::max);
    (least / even, most / even)
}

/// Milliseconds, to 2 %.
fn quantile(waits: &BTreeMap<u32, u64>, part: f64) -> f64 {
    let wanted = waits.values().sum::<u64>() as f64 * part;
    let mut seen = 0.0;
    for (bucket, count) in waits {
        seen += *count as f64;
        if seen >= wanted {
            return ((f64::from(*bucket) + 0.5) / 50.0).exp() / 1e6;
        }
    }
    0.0
}

/// From single times in nanoseconds.
pub(crate) fn times(mut nanos: Vec<f64>) -> Figures {
    nanos.sort_by(f64::total_cmp);
    let at = |part: f64| nanos[((nanos.len() - 1) as f64 * part).round() as usize] / 1e6;
    let mut figures = Figures::new();
    if !nanos.is_empty() {
        for (name, part) in [(P50, 0.5), (P99, 0.99), (LONGEST, 1.0)] {
            figures.insert(name.to_owned(), at(part));
        }
        figures.insert("times".to_owned(), nanos.len() as f64);
    }
    figures
}

/// Each figure's median over the rounds that have it.
pub(crate) fn medians(rounds: &[Figures]) -> Figures {
    let mut all = BTreeMap::<&String, Vec<f64>>::new();
    for (name, value) in rounds.iter().flatten() {
        all.entry(name).or_default().push(*value);
    }
    all.into_iter()
        .map(|(name, mut values)| {
            values.sort_by(f64::total_cmp);
            (name.clone(), values[values.len() / 2])
        })
        .collect()
}

impl Results {
    /// A median: `None` if the library did not take part.
    pub(crate) fn median(&self, workload: &str, library: &str, figure: &str) -> Option<f64> {
        let workload = self
            .workloads
            .iter()
            .find(|measured| measured.name == workload)?;
        let library = workload.libraries.iter().find(|one| one.name == library)?;
        library.median.get(figure).copied()
    }
}

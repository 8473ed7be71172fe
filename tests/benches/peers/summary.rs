//! The few ratios that `lock-runtime/docs/cost.md` shows.

use crate::figures::{CYCLES, Measured, P50, Results};
use crate::plan;
use crate::report;

const WORKLOADS: [&str; 7] = ["solo", "many", "hot", "hot4", "sale", "sale4", "handoff"];

/// A row for each workload: ours and the best of the others, as ratios to the workload's reference.
pub(crate) fn markdown(results: &Results) -> String {
    let head = [
        "",
        "compared with",
        "plain",
        "fenced",
        "fair",
        "best other library",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for name in WORKLOADS {
        let Some(measured) = results
            .workloads
            .iter()
            .find(|measured| measured.name == name)
        else {
            continue;
        };
        // Times, where there are no cycles. Of times, less is better.
        let times = !measured
            .libraries
            .iter()
            .any(|one| one.median.contains_key(CYCLES));
        let figure = if times { P50 } else { CYCLES };
        let ratio = |library: &str| {
            let reference = results.median(name, &measured.reference, figure)?;
            Some(results.median(name, library, figure)? / reference)
        };
        let cell = |library| ratio(library).map_or_else(|| "–".to_owned(), report::number);
        let others = peers(measured).filter_map(|other| Some((ratio(other)?, other)));
        let best = match times {
            true => others.min_by(|one, other| one.0.total_cmp(&other.0)),
            false => others.max_by(|one, other| one.0.total_cmp(&other.0)),
        };
        let best = best.map(|(ratio, other)| format!("{} {other}", report::number(ratio)));
        rows.push(vec![
            format!("{name}: {}", measured.about),
            reference(measured),
            cell("ours"),
            cell("ours-fenced"),
            cell("ours-fair"),
            best.unwrap_or_else(|| "–".to_owned()),
        ]);
    }
    report::table(&rows)
}

fn reference(measured: &Measured) -> String {
    match measured.reference.as_str() {
        "bare" => "the bare loop",
        _ if measured.name == "handoff" => "a round trip (less is better)",
        _ => "no lock at all",
    }
    .to_owned()
}

fn peers(measured: &Measured) -> impl Iterator<Item = &str> {
    let names = measured.libraries.iter().map(|one| one.name.as_str());
    names.filter(|name| plan::is_peer(name))
}

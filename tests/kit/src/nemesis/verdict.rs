//! The verdict on a run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::report::{Injected, Report, Stall};
use crate::history::{
    Access, Check, Disturbance, Effect, History, Outcome, Record, Violation, stale_accesses,
};

/// How much longer than its time an attempt may take, on a machine under this load.
const SLACK: Duration = Duration::from_secs(3);
/// How long the effect of a moved clock lasts, in nanoseconds.
const AFTER_CLOCK: u64 = 10_000_000_000;

/// Waits until nothing is left or patience has ended. Returns what is left.
pub(super) async fn until_none(
    patience: Duration,
    mut look: impl AsyncFnMut() -> Vec<String>,
) -> Vec<String> {
    let started = Instant::now();
    loop {
        let left = look().await;
        if left.is_empty() || started.elapsed() > patience {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) fn report(
    records: Vec<Record>,
    accesses: &[Access],
    refused: u64,
    injected: Vec<Injected>,
    noticed: Vec<Violation>,
) -> Report {
    let history = History::merge(records);
    let disturbances: Vec<Disturbance> = injected.iter().map(Injected::disturbance).collect();
    let mut violations = noticed;
    violations.extend(history.overlaps(&disturbances));
    violations.extend(history.token_faults(&disturbances));
    violations.extend(stale_accesses(accesses, &disturbances));
    violations.extend(history.endless_waits(SLACK, &disturbances));
    violations.sort_by_key(|violation| (!violation.in_model, violation.check));
    let mut report = Report {
        violations,
        accesses: count(accesses.len()),
        refused,
        stalls: stalls(&history, &injected),
        ..Report::default()
    };
    for attempt in history.attempts() {
        report.attempts += 1;
        match attempt.answer.map(|(_, outcome)| outcome) {
            Some(Outcome::Ok) => report.granted += 1,
            Some(Outcome::Busy) => report.busy += 1,
            Some(Outcome::Failed) => report.failed += 1,
            _ => report.unknown += 1,
        }
    }
    for one in &injected {
        if one.fault == super::Fault::Failover && one.effect == Effect::DataLost {
            report.excused += Duration::from_nanos(one.to - one.from);
        }
        *report.faults.entry(one.fault).or_default() += 1;
    }
    // A run in which nothing happened proves nothing.
    for (what, number) in [("granted", report.granted), ("accessed", report.accesses)] {
        if number == 0 {
            report.violations.push(Violation {
                check: Check::Progress,
                in_model: true,
                text: format!("nothing was {what}"),
            });
        }
    }
    report
}

/// For each kind of fault, the longest time from its end until every key was granted again. Only
/// cases without other faults in between count.
fn stalls(history: &History, injected: &[Injected]) -> BTreeMap<super::Fault, Stall> {
    let mut grants: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for attempt in history.attempts() {
        let times = grants.entry(&attempt.key).or_default();
        if let Some((at, Outcome::Ok)) = attempt.answer {
            times.push(at);
        }
    }
    for times in grants.values_mut() {
        times.sort_unstable();
    }
    let mut stalls: BTreeMap<super::Fault, Stall> = BTreeMap::new();
    let is_own = |one: &&Injected| !one.fault.is_of_others();
    for fault in injected.iter().filter(is_own) {
        let firsts = grants.iter().filter_map(|(key, times)| {
            let next = times.partition_point(|at| *at < fault.to);
            Some((*times.get(next)?, *key))
        });
        let Some((last, key)) = firsts.max() else {
            continue;
        };
        let disturbed = injected.iter().filter(is_own).any(|other| {
            // Keys written while the clock was ahead last longer than their lease.
            let until = match other.effect {
                Effect::ClockMoved => other.to.saturating_add(AFTER_CLOCK),
                _ => other.to,
            };
            !std::ptr::eq(other, fault) && other.from < last && until > fault.from
        });
        let stall = Stall {
            lasted: Duration::from_nanos(last - fault.to),
            key: key.to_owned(),
        };
        if disturbed {
            continue;
        }
        let longest = stalls.entry(fault.fault).or_insert_with(|| stall.clone());
        if stall.lasted > longest.lasted {
            *longest = stall;
        }
    }
    stalls
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

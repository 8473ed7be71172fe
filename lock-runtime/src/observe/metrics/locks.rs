//! [`LockMetrics`]: what one recorder is told of the locks of one template.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram, Recorder};

use super::grown::{ByLock, Grown, LockLabels};
use super::level::{Level, LevelGauge};
use super::table;
use crate::error::LostReason;
use crate::observe::event::{LockKind, Subject, TermEnd};

/// The template of a key that has none. Empty, Prometheus would take the label for missing.
const UNLABELLED: &str = "unlabelled";

/// How many of them are held, lead and wait now.
#[derive(Debug, Default)]
pub(super) struct LockLevels {
    held: Level,
    leading: Level,
    waiting: Level,
}

#[derive(Debug)]
pub(super) struct LockMetrics {
    labels: LockLabels,
    pub(super) waiting: LevelGauge,
    pub(super) held: LevelGauge,
    /// There if there ever was a leader: most locks have none.
    leading: OnceLock<LevelGauge>,
    hold: Histogram,
    ended: Grown<(&'static str, Counter, Histogram)>,
    lost: Grown<(LostReason, Counter)>,
    terms: Grown<(TermEnd, Counter)>,
}

/// A request for no key at all is refused, and counted as one without a template.
pub(super) fn labels_of(lock: Option<&Subject<'_>>) -> LockLabels {
    LockLabels {
        template: lock.and_then(Subject::template).unwrap_or(UNLABELLED),
        kind: lock.map_or(LockKind::Exclusive, |lock| lock.kind),
    }
}

impl LockMetrics {
    pub(super) fn new(labels: LockLabels, by: &dyn Recorder, levels: &ByLock<LockLevels>) -> Self {
        let values = [labels.template, labels.kind.as_str()];
        let levels = levels.find_or_add(labels, LockLevels::default);
        let waiting = table::WAITING.gauge(by, &values);
        let held = table::HELD.gauge(by, &values);
        let leading = OnceLock::new();
        if !levels.leading.is_zero() {
            leading.get_or_init(|| leading_gauge(labels, by, levels));
        }
        Self {
            labels,
            waiting: LevelGauge::new(waiting, levels.waiting.clone()),
            held: LevelGauge::new(held, levels.held.clone()),
            leading,
            hold: table::HOLD.histogram(by, &values),
            ended: Grown::default(),
            lost: Grown::default(),
            terms: Grown::default(),
        }
    }

    /// A request ended.
    pub(super) fn ended(&self, outcome: &'static str, waited: Duration, by: &dyn Recorder) {
        let LockLabels { template, kind } = self.labels;
        let make = || {
            let values = [template, kind.as_str(), outcome];
            let count = table::ACQUISITIONS.counter(by, &values);
            (outcome, count, table::WAIT.histogram(by, &values))
        };
        let (_, count, wait) = self.ended.find_or_add(|(of, ..)| *of == outcome, make);
        count.increment(1);
        wait.record(waited);
    }

    /// A hold ended, with its guard or before.
    pub(super) fn released(&self, held: Duration) {
        self.held.add(-1);
        self.hold.record(held);
    }

    /// A hold was lost.
    pub(super) fn lost(&self, reason: LostReason, held: Duration, by: &dyn Recorder) {
        self.released(held);
        let LockLabels { template, kind } = self.labels;
        let make = || {
            let values = [template, kind.as_str(), reason.as_str()];
            (reason, table::LOST.counter(by, &values))
        };
        let (_, count) = self.lost.find_or_add(|(of, _)| *of == reason, make);
        count.increment(1);
    }

    /// A term began.
    pub(super) fn term_began(&self, by: &dyn Recorder, levels: &ByLock<LockLevels>) {
        self.leading(by, levels).add(1);
    }

    fn leading(&self, by: &dyn Recorder, levels: &ByLock<LockLevels>) -> &LevelGauge {
        let levels = levels.find_or_add(self.labels, LockLevels::default);
        self.leading
            .get_or_init(|| leading_gauge(self.labels, by, levels))
    }

    /// A term ended.
    pub(super) fn term_ended(&self, how: TermEnd, by: &dyn Recorder, levels: &ByLock<LockLevels>) {
        self.leading(by, levels).add(-1);
        let LockLabels { template, kind } = self.labels;
        let make = || {
            let values = [template, kind.as_str(), how.as_str()];
            (how, table::TERMS.counter(by, &values))
        };
        let (_, count) = self.terms.find_or_add(|(of, _)| *of == how, make);
        count.increment(1);
    }
}

fn leading_gauge(labels: LockLabels, by: &dyn Recorder, levels: &LockLevels) -> LevelGauge {
    let values = [labels.template, labels.kind.as_str()];
    LevelGauge::new(table::LEADING.gauge(by, &values), levels.leading.clone())
}

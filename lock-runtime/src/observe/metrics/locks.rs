//! [`LockMetrics`]: what one recorder is told of the locks of one template.

use std::time::Duration;

use metrics::{Counter, Histogram, Recorder};

use super::grown::{ByLock, Grown, LockLabels};
use super::level::{Level, LevelGauge};
use super::table;
use crate::error::LostReason;
use crate::observe::event::{LockKind, Subject};

/// The template of a key that has none. Empty, Prometheus would take the label for missing.
const UNLABELLED: &str = "unlabelled";

/// How many of them are held and wait now.
#[derive(Debug, Default)]
pub(super) struct LockLevels {
    held: Level,
    waiting: Level,
}

#[derive(Debug)]
pub(super) struct LockMetrics {
    labels: LockLabels,
    pub(super) waiting: LevelGauge,
    pub(super) held: LevelGauge,
    hold: Histogram,
    ended: Grown<(&'static str, Counter, Histogram)>,
    lost: Grown<(LostReason, Counter)>,
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
        Self {
            labels,
            waiting: LevelGauge::new(waiting, levels.waiting.clone()),
            held: LevelGauge::new(held, levels.held.clone()),
            hold: table::HOLD.histogram(by, &values),
            ended: Grown::default(),
            lost: Grown::default(),
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
}

//! [`LockMetrics`]: what one recorder is told of the locks of one template.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Histogram, Recorder};

use super::level::{Level, LevelGauge};
use super::made::Made;
use super::table;
use crate::error::LostReason;
use crate::observe::event::{LockKind, Subject, TermEnd};

/// The template of a key that has none. Empty, Prometheus would take the label for missing.
const UNLABELLED: &str = "unlabelled";

/// How many of them are held, lead and wait now.
#[derive(Debug, Default)]
pub(super) struct LockLevels {
    held: Level,
    /// There if anybody ever stood for it: most locks have no leader.
    leading: OnceLock<Level>,
    waiting: Level,
}

/// Locks that are counted together: by their template, never by their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LockLabels {
    template: &'static str,
    kind: &'static str,
}

#[derive(Debug)]
pub(super) struct LockMetrics {
    labels: LockLabels,
    levels: Arc<LockLevels>,
    pub(super) waiting: LevelGauge,
    pub(super) held: LevelGauge,
    /// There, as zero too, once somebody stands for it: an alert must see that nobody leads.
    leading: OnceLock<LevelGauge>,
    hold: Histogram,
    ended: Made<&'static str, (Counter, Histogram)>,
}

/// A request for no key at all is refused, and counted as one without a template.
pub(super) fn labels_of(lock: Option<&Subject<'_>>) -> LockLabels {
    LockLabels {
        template: lock.and_then(Subject::template).unwrap_or(UNLABELLED),
        kind: lock.map_or(LockKind::Exclusive, |lock| lock.kind).as_str(),
    }
}

impl LockMetrics {
    pub(super) fn new(
        labels: LockLabels,
        by: &dyn Recorder,
        levels: &Made<LockLabels, Arc<LockLevels>>,
    ) -> Self {
        let values = [labels.template, labels.kind];
        let levels = Arc::clone(levels.pin().get_or_insert_with(labels, Arc::default));
        let waiting = table::WAITING.gauge(by, &values);
        let held = table::HELD.gauge(by, &values);
        let metrics = Self {
            labels,
            waiting: LevelGauge::new(waiting, levels.waiting.clone()),
            held: LevelGauge::new(held, levels.held.clone()),
            leading: OnceLock::new(),
            hold: table::HOLD.histogram(by, &values),
            ended: Made::default(),
            levels,
        };
        if metrics.levels.leading.get().is_some() {
            metrics.leading(by);
        }
        metrics
    }

    pub(super) fn record_end(&self, outcome: &'static str, waited: Duration, by: &dyn Recorder) {
        let LockLabels { template, kind } = self.labels;
        let make = || {
            let values = [template, kind, outcome];
            let count = table::ACQUISITIONS.counter(by, &values);
            (count, table::WAIT.histogram(by, &values))
        };
        let ended = self.ended.pin();
        let (count, wait) = ended.get_or_insert_with(outcome, make);
        count.increment(1);
        wait.record(waited);
    }

    /// A hold ended, with its guard or before.
    pub(super) fn record_release(&self, held: Duration) {
        self.held.add(-1);
        self.hold.record(held);
    }

    pub(super) fn record_loss(&self, reason: LostReason, held: Duration, by: &dyn Recorder) {
        self.record_release(held);
        let LockLabels { template, kind } = self.labels;
        let values = [template, kind, reason.as_str()];
        table::LOST.counter(by, &values).increment(1);
    }

    /// How many lead. Whoever asks for it stands for the lock.
    pub(super) fn leading(&self, by: &dyn Recorder) -> &LevelGauge {
        self.leading.get_or_init(|| {
            let LockLabels { template, kind } = self.labels;
            let level = self.levels.leading.get_or_init(Level::default);
            LevelGauge::new(table::LEADING.gauge(by, &[template, kind]), level.clone())
        })
    }

    pub(super) fn record_term_end(&self, how: TermEnd, by: &dyn Recorder) {
        self.leading(by).add(-1);
        let LockLabels { template, kind } = self.labels;
        let values = [template, kind, how.as_str()];
        table::TERMS.counter(by, &values).increment(1);
    }
}

//! [`METRICS`]: the names, types, units and labels of all metrics, in one place.

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit,
};

/// One metric of [`MetricsObserver`](crate::observe::MetricsObserver).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MetricInfo {
    /// Such as `lock_held`.
    pub name: &'static str,
    /// What can be done with it.
    pub kind: MetricKind,
    /// `count` or `seconds`.
    pub unit: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it counts or measures.
    pub help: &'static str,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// How many values there were, and how they are spread.
    Histogram,
}

impl MetricKind {
    /// `counter`, `gauge`, `histogram`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// All metrics of [`MetricsObserver`](crate::observe::MetricsObserver): the table in
/// `docs/observability.md`, for dashboards and their tests.
pub const METRICS: &[MetricInfo] = &[
    ACQUISITIONS,
    WAIT,
    HOLD,
    HELD,
    WAITING,
    RENEWALS,
    LOST,
    LEADING,
    TERMS,
    GRANTS,
    COMMANDS,
    COMMAND,
    RECONNECTS,
    CONNECTIONS,
    UNDO_PENDING,
];

const LOCK: &[&str] = &["template", "kind"];

pub(super) const ACQUISITIONS: MetricInfo = MetricInfo {
    labels: &["template", "kind", "outcome"],
    ..counter("lock_acquisitions_total", "Requests that ended.")
};
pub(super) const WAIT: MetricInfo = MetricInfo {
    labels: &["template", "kind", "outcome"],
    ..seconds(
        "lock_wait_seconds",
        "From asking to the end of the request.",
    )
};
pub(super) const HOLD: MetricInfo = MetricInfo {
    labels: LOCK,
    ..seconds(
        "lock_hold_seconds",
        "From the grant to the release or the loss.",
    )
};
pub(super) const HELD: MetricInfo = MetricInfo {
    labels: LOCK,
    ..gauge("lock_held", "Holds now.")
};
pub(super) const WAITING: MetricInfo = MetricInfo {
    labels: LOCK,
    ..gauge("lock_waiting", "Requests that wait.")
};
pub(super) const RENEWALS: MetricInfo = MetricInfo {
    labels: &["on_time"],
    ..counter("lock_renewals_total", "Renewals of holds.")
};
pub(super) const LOST: MetricInfo = MetricInfo {
    labels: &["template", "kind", "reason"],
    ..counter("lock_lost_total", "Holds that were lost.")
};
pub(super) const LEADING: MetricInfo = MetricInfo {
    labels: LOCK,
    ..gauge("lock_leading", "Terms of leaders now.")
};
pub(super) const TERMS: MetricInfo = MetricInfo {
    labels: &["template", "kind", "end"],
    ..counter("lock_terms_total", "Terms of leaders that ended.")
};
pub(super) const GRANTS: MetricInfo = MetricInfo {
    labels: &["how"],
    ..counter("lock_grants_total", "Grants, by whom they came from.")
};
pub(super) const COMMANDS: MetricInfo = MetricInfo {
    labels: &["verb", "outcome"],
    ..counter("lock_commands_total", "Commands to the store that ended.")
};
pub(super) const COMMAND: MetricInfo = MetricInfo {
    labels: &["verb"],
    ..seconds("lock_command_seconds", "From sending a command to its end.")
};
pub(super) const RECONNECTS: MetricInfo = MetricInfo {
    labels: &["server"],
    ..counter(
        "lock_reconnects_total",
        "Connections in place of lost ones.",
    )
};
pub(super) const CONNECTIONS: MetricInfo = gauge("lock_connections", "Connections now.");
pub(super) const UNDO_PENDING: MetricInfo =
    gauge("lock_undo_pending", "Undos and releases in the background.");

const fn counter(name: &'static str, help: &'static str) -> MetricInfo {
    info(name, MetricKind::Counter, "count", help)
}

const fn gauge(name: &'static str, help: &'static str) -> MetricInfo {
    info(name, MetricKind::Gauge, "count", help)
}

const fn seconds(name: &'static str, help: &'static str) -> MetricInfo {
    info(name, MetricKind::Histogram, "seconds", help)
}

const fn info(
    name: &'static str,
    kind: MetricKind,
    unit: &'static str,
    help: &'static str,
) -> MetricInfo {
    MetricInfo {
        name,
        kind,
        unit,
        labels: &[],
        help,
    }
}

static METADATA: Metadata<'static> =
    Metadata::new("lock_runtime", Level::INFO, Some("lock_runtime::observe"));

impl MetricInfo {
    pub(super) fn describe(&self, to: &dyn Recorder) {
        let name = KeyName::from_const_str(self.name);
        let unit = Unit::from_string(self.unit);
        let help = SharedString::const_str(self.help);
        match self.kind {
            MetricKind::Counter => to.describe_counter(name, unit, help),
            MetricKind::Gauge => to.describe_gauge(name, unit, help),
            MetricKind::Histogram => to.describe_histogram(name, unit, help),
        }
    }

    /// Registers one of its series. The values are in the order of the labels.
    pub(super) fn counter(&self, of: &dyn Recorder, values: &[&str]) -> Counter {
        of.register_counter(&self.key(values), &METADATA)
    }

    pub(super) fn gauge(&self, of: &dyn Recorder, values: &[&str]) -> Gauge {
        of.register_gauge(&self.key(values), &METADATA)
    }

    pub(super) fn histogram(&self, of: &dyn Recorder, values: &[&str]) -> Histogram {
        of.register_histogram(&self.key(values), &METADATA)
    }

    fn key(&self, values: &[&str]) -> Key {
        debug_assert_eq!(self.labels.len(), values.len(), "{}", self.name);
        let labels = self.labels.iter().zip(values);
        let labels: Vec<Label> = labels
            .map(|(label, value)| Label::new(*label, (*value).to_owned()))
            .collect();
        Key::from_parts(self.name, labels)
    }
}

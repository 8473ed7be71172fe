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

lock_store::named! {
    "Its name",
    /// The type of a metric.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum MetricKind {
        /// Only rises.
        Counter = "counter",
        /// Rises and falls.
        Gauge = "gauge",
        /// How many values there were, and how they are spread.
        Histogram = "histogram",
    }
}

impl MetricKind {
    const fn unit(self) -> &'static str {
        match self {
            Self::Counter | Self::Gauge => "count",
            Self::Histogram => "seconds",
        }
    }
}

macro_rules! metrics {
    ($($NAME:ident: $kind:ident $name:literal $labels:tt $help:literal;)*) => {
        $(pub(super) const $NAME: MetricInfo = MetricInfo {
            name: $name,
            kind: MetricKind::$kind,
            unit: MetricKind::$kind.unit(),
            labels: &$labels,
            help: $help,
        };)*

        /// All metrics of [`MetricsObserver`](crate::observe::MetricsObserver): the table in
        /// `docs/observability.md`, for dashboards and their tests.
        pub const METRICS: &[MetricInfo] = &[$($NAME),*];
    };
}

metrics! {
    ACQUISITIONS: Counter "lock_acquisitions_total" ["template", "kind", "outcome"]
        "Requests that ended.";
    WAIT: Histogram "lock_wait_seconds" ["template", "kind", "outcome"]
        "From asking to the end of the request.";
    HOLD: Histogram "lock_hold_seconds" ["template", "kind"]
        "From the grant to the release or the loss.";
    HELD: Gauge "lock_held" ["template", "kind"] "Holds now.";
    WAITING: Gauge "lock_waiting" ["template", "kind"] "Requests that wait.";
    RENEWALS: Counter "lock_renewals_total" ["on_time"] "Renewals of holds.";
    LOST: Counter "lock_lost_total" ["template", "kind", "reason"] "Holds that were lost.";
    LEADING: Gauge "lock_leading" ["template", "kind"] "Terms of leaders now.";
    TERMS: Counter "lock_terms_total" ["template", "kind", "end"] "Terms of leaders that ended.";
    GRANTS: Counter "lock_grants_total" ["how"] "Grants, by whom they came from.";
    COMMANDS: Counter "lock_commands_total" ["verb", "outcome"]
        "Commands to the store that ended.";
    COMMAND: Histogram "lock_command_seconds" ["verb"] "From sending a command to its end.";
    RECONNECTS: Counter "lock_reconnects_total" ["server"] "Connections in place of lost ones.";
    CONNECTIONS: Gauge "lock_connections" [] "Connections now.";
    UNDO_PENDING: Gauge "lock_undo_pending" [] "Undos and releases in the background.";
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

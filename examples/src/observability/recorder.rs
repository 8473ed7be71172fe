//! The recorder of the metrics.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Seconds for which locks are waited for and held.
const WAITS_AND_HOLDS: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0];

/// Seconds that a store in the same data centre takes, and one that is in trouble.
const COMMANDS: [f64; 8] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.01, 0.05, 0.25, 1.0];

/// Installs the recorder of this process. Its handle renders the page for Prometheus.
///
/// The service calls [`PrometheusHandle::run_upkeep`] every few seconds. Without it, histograms
/// that nobody scrapes take more and more memory.
///
/// # Errors
/// There is a recorder already.
pub fn install_recorder() -> Result<PrometheusHandle, BuildError> {
    let commands = Matcher::Full("lock_command_seconds".to_owned());
    PrometheusBuilder::new()
        .set_buckets(&WAITS_AND_HOLDS)?
        .set_buckets_for_metric(commands, &COMMANDS)?
        .install_recorder()
}

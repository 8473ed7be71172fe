//! What [`MetricsObserver`] tells the recorder that a service has installed.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod background;
mod page;
mod requests;

use std::time::Duration;

use lock_runtime::observe::MetricsObserver;
use lock_runtime::{LockClient, LockClientBuilder};
use metrics_exporter_prometheus::PrometheusHandle;

fn builder(url: &str) -> LockClientBuilder {
    let builder = LockClient::builder().url(url);
    // Tasks hand the lock off however slow the test is.
    let builder = builder.local_tenure(64, Duration::from_secs(60));
    builder.observer(MetricsObserver::new())
}

async fn client(url: &str) -> LockClient {
    builder(url).connect().await.unwrap()
}

/// The value of one series, as Prometheus reads it. Zero if there is none.
fn value(recorded: &PrometheusHandle, series: &str) -> f64 {
    let text = recorded.render();
    let of = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        (name == series).then(|| value.parse().unwrap())
    };
    text.lines().find_map(of).unwrap_or(0.0)
}

fn assert_values(recorded: &PrometheusHandle, expected: &[(&str, f64)]) {
    for (series, expected) in expected {
        let found = value(recorded, series);
        assert!(
            found == *expected,
            "{series} is {found}, not {expected}:\n{}",
            recorded.render()
        );
    }
}

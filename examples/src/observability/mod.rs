//! A service that can be seen from outside: metrics for Prometheus, health, and spans for
//! OpenTelemetry. `examples/observability` has a dashboard and alert rules for its metrics.

mod recorder;
mod service;
mod spans;

pub use self::recorder::install_recorder;
pub use self::service::service;
pub use self::spans::print_spans;

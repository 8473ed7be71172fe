//! The spans, as OpenTelemetry's.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use opentelemetry_stdout::SpanExporter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

const SERVICE: &str = "observability";

/// Prints each span when it ends, and what the libraries warn of. A service with a collector has
/// the exporter of its protocol in place of [`SpanExporter`], and sends spans in batches.
///
/// # Errors
/// This process has a subscriber already.
pub fn print_spans() -> Result<SdkTracerProvider, TryInitError> {
    let provider = SdkTracerProvider::builder()
        .with_resource(Resource::builder().with_service_name(SERVICE).build())
        .with_simple_exporter(SpanExporter::default())
        .build();
    let spans = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(SERVICE))
        .with_location(false)
        .with_threads(false);
    let warnings = fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(spans.with_filter(LevelFilter::INFO))
        .with(warnings.with_filter(LevelFilter::WARN))
        .try_init()?;
    Ok(provider)
}

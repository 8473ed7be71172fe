//! A service that can be seen from outside: `/metrics` for Prometheus, `/health` for probes, and a
//! span of OpenTelemetry for each body under a lock.
//!
//! `cargo run -p lock-examples --features observability --bin observability` starts it, and prints
//! what to ask it. The service itself is in `examples/src/observability`; `examples/observability`
//! has a dashboard for Grafana and alert rules for Prometheus.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use lock_examples::observability::{install_recorder, print_spans, service};
use lock_runtime::observe::MetricsObserver;
use lock_runtime::{LockClient, LockError};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;

/// How long running requests may take after the service is told to stop.
const STOP: Duration = Duration::from_secs(10);

/// How often the recorder sorts what it was told.
const UPKEEP: Duration = Duration::from_secs(5);

/// A service with metrics, health and spans.
#[derive(Debug, Parser)]
#[command(name = "observability")]
struct Args {
    /// Serve here, until Ctrl-C
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The Redis that replicas of this service share; without it, locks hold in this process only
    #[arg(long, default_value = "memory:")]
    url: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => lock_examples::give_up("observability", &*error),
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let args: Args = lock_examples::read()?;
    let spans = print_spans()?;
    let metrics = install_recorder()?;
    let locks = connect(args.url).await?;
    let listener = TcpListener::bind(args.listen).await?;
    let address = listener.local_addr()?;
    println!("curl -X POST http://{address}/buy/42   # its span appears here");
    println!("curl http://{address}/metrics");
    println!("curl http://{address}/health");

    let upkeep = tokio::spawn(keep_up(metrics.clone()));
    let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    axum::serve(listener, service(locks.clone(), metrics))
        .with_graceful_shutdown(stop)
        .await?;
    upkeep.abort();
    locks.shutdown(STOP).await;
    spans.shutdown()?;
    Ok(())
}

async fn connect(url: String) -> Result<LockClient, Box<dyn Error>> {
    let builder = LockClient::builder()
        .url(url)
        .namespace("observability")
        .observer(MetricsObserver::new());
    match builder.connect().await {
        Err(error @ LockError::Config { .. }) => Err(lock_examples::usage::<Args>(error).into()),
        connected => Ok(connected?),
    }
}

async fn keep_up(metrics: PrometheusHandle) {
    let mut due = tokio::time::interval(UPKEEP);
    loop {
        due.tick().await;
        metrics.run_upkeep();
    }
}

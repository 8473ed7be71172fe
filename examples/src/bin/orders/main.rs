//! An HTTP service with axum: a lock per order, a rate limit per tenant, and for every error the
//! status that tells the caller what to do.
//!
//! `cargo run -p lock-examples --features orders --bin orders` starts it on a free port, sends it
//! requests and prints what came back. `--listen 127.0.0.1:8080` serves until Ctrl-C. The service
//! itself is in `examples/src/orders`.

mod tour;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use lock_examples::orders::{Shop, report, serve, service};
use lock_runtime::{LockClient, LockError};
use tokio::net::TcpListener;

/// How long running requests may take after the service is told to stop.
const STOP: Duration = Duration::from_secs(10);

/// How often the report is due.
const REPORT: Duration = Duration::from_secs(60);

/// How long a request waits for its lock, and for a Redis that is down.
const PATIENCE: Duration = Duration::from_millis(200);
const SILENCE: Duration = Duration::from_secs(1);

/// Orders over HTTP: a lock per order, a rate limit per tenant, and errors as HTTP statuses.
///
/// Without options it starts on a free port, sends itself requests, and prints what came back.
#[derive(Debug, Parser)]
#[command(name = "orders")]
struct Args {
    /// Keep serving here, until Ctrl-C
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The Redis that replicas of this service share; without it, locks and limits hold in this
    /// process only
    #[arg(long, requires = "listen")]
    url: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(status) => status,
        Err(error) => lock_examples::give_up("orders", &*error),
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let args: Args = lock_examples::read()?;
    let locks = match args.url {
        Some(url) => connect(url).await?,
        None => LockClient::in_memory(),
    };
    let locks = locks.with_wait(PATIENCE);
    let shop = Shop::new(locks.clone());
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(args.listen.unwrap_or(free_port)).await?;
    let address = listener.local_addr()?;
    let service = service(shop.clone());

    if args.listen.is_some() {
        println!(
            "http://{address}/: POST /TENANT/orders/NUMBER/pay, GET /TENANT/quote, GET /health"
        );
        let reports = tokio::spawn(report_each_minute(shop));
        let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
        serve(listener, service, &locks, stop, STOP).await?;
        reports.abort();
        return Ok(ExitCode::SUCCESS);
    }
    let server = axum::serve(listener, service);
    tokio::select! {
        served = server.into_future() => Err(format!("the service stopped: {served:?}").into()),
        seen = tour::take(address, &locks) => Ok(seen?),
    }
}

async fn connect(url: String) -> Result<LockClient, Box<dyn Error>> {
    let builder = LockClient::builder()
        .url(url)
        .namespace("orders")
        .unavailable_after(SILENCE);
    match builder.connect().await {
        Err(error @ LockError::Config { .. }) => Err(lock_examples::usage::<Args>(error).into()),
        connected => Ok(connected?),
    }
}

/// Every replica tries each minute.
async fn report_each_minute(shop: Shop) {
    let mut due = tokio::time::interval(REPORT);
    loop {
        due.tick().await;
        match report(&shop).await {
            Ok(Some(paid)) => println!("{paid} orders are paid"),
            Ok(None) => {}
            Err(error) => eprintln!("no report: {error}"),
        }
    }
}

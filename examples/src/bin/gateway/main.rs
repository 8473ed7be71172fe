//! An HTTP gateway with axum: a lock per order, a rate limit per app, and every error answered with the status that says what to do.
//!
//! `cargo run -p lock-examples --features gateway --bin gateway` starts it on a free port, sends it requests and
//! prints what came back. `--listen 127.0.0.1:8080` keeps serving, until Ctrl-C.

mod error;
mod handlers;
mod tour;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use lock_runtime::{LockClient, LockError};
use tokio::net::TcpListener;

/// How long requests that are being served may take when the gateway is told to stop.
const STOP: Duration = Duration::from_secs(10);

/// An HTTP gateway: a lock per order, a rate limit per app, and errors as HTTP statuses.
///
/// Without options it starts on a free port, sends itself requests, and prints what came back.
#[derive(Debug, Parser)]
#[command(name = "gateway")]
struct Args {
    /// Keep serving here, until Ctrl-C
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The Redis that replicas of this gateway share; without it, locks and limits hold in this process only
    #[arg(long, requires = "listen")]
    url: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(status) => status,
        Err(error) => lock_examples::give_up("gateway", &*error),
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let args: Args = lock_examples::read()?;
    let url = args.url.as_deref().unwrap_or("memory:");
    let locks = match LockClient::builder().url(url).connect().await {
        Err(error @ LockError::Config { .. }) => {
            return Err(lock_examples::usage::<Args>(error).into());
        }
        connected => connected?,
    };
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(args.listen.unwrap_or(free_port)).await?;
    let address = listener.local_addr()?;
    let server = axum::serve(listener, handlers::gateway(locks.clone()));

    if args.listen.is_some() {
        println!("http://{address}/: POST /orders/ID/pay, GET /apps/ID/quote");
        let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
        server.with_graceful_shutdown(stop).await?;
        locks.shutdown(STOP).await;
        return Ok(ExitCode::SUCCESS);
    }
    tokio::select! {
        served = server.into_future() => Err(format!("the gateway stopped: {served:?}").into()),
        seen = tour::take(address, &locks) => Ok(seen?),
    }
}

//! Transfers between accounts: each needs two locks at once, and none gets stuck.
//!
//! `cargo run -p lock-examples --bin transfer` lets 32 tasks send money between random pairs of 8
//! accounts for three seconds, and counts the money before and after. `--no-lock` shows how money
//! appears or vanishes without the locks.

mod accounts;
mod bank;
mod report;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use lock_runtime::LockClient;

use crate::bank::Bank;

/// Transfers between accounts: each needs two locks at once, and none gets stuck.
#[derive(Debug, Parser)]
#[command(name = "transfer")]
struct Args {
    /// How many tasks send money at the same time
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    tasks: u32,
    /// For how long
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Send without the locks, to see what they prevent
    #[arg(long)]
    no_lock: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(status) => status,
        Err(error) => lock_examples::give_up("transfer", &*error),
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let args: Args = lock_examples::read()?;
    LockClient::in_memory().install()?;
    let day = Bank::open(&args).await?;
    Ok(day.report())
}

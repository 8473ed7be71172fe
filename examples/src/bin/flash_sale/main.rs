//! The flash sale: 200 buyers want 100 items, all at once. Each sale is a read, a moment of thought
//! and a write.
//!
//! `cargo run -p lock-examples` sells them under a lock. `--no-lock` shows what happens without it.
//! `--url redis://127.0.0.1/ --processes 4` sells with real processes, and `--crash` kills one of
//! them.

mod args;
mod event;
mod inventory;
mod local;
mod process;
mod processes;
mod report;
mod shop;

use std::error::Error;
use std::process::ExitCode;

use lock_runtime::LockError;

use crate::args::{Args, Role};
use crate::inventory::InventoryError;
use crate::report::Outcome;
use crate::shop::SaleError;

/// Why there is no result to show.
#[derive(Debug)]
enum Failure {
    /// The request could not work.
    Usage(clap::Error),
    /// The sale was tried, and something failed.
    Broken(Box<dyn Error>),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(Outcome::Right | Outcome::WrongWithoutLock) => ExitCode::SUCCESS,
        Ok(Outcome::WrongUnderLock) => ExitCode::FAILURE,
        Err(Failure::Usage(error)) => lock_examples::give_up("flash_sale", &error),
        Err(Failure::Broken(error)) => lock_examples::give_up("flash_sale", &*error),
    }
}

async fn run() -> Result<Outcome, Failure> {
    let args = Args::read()?;
    if let Some(Role::Process(args)) = args.role {
        process::run(args).await?;
        return Ok(Outcome::Right);
    }
    let sale = match args.shared() {
        None => local::run(&args).await?,
        Some((url, processes)) => processes::run(&args, url, processes).await?,
    };
    Ok(sale.report())
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<SaleError> for Failure {
    fn from(error: SaleError) -> Self {
        match error {
            SaleError::Lock(error) => error.into(),
            SaleError::Inventory(error) => error.into(),
        }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            // The only setting from outside is the URL.
            LockError::Config { .. } => Self::Usage(args::usage(error)),
            error => Self::Broken(error.into()),
        }
    }
}

impl From<InventoryError> for Failure {
    fn from(error: InventoryError) -> Self {
        Self::Broken(error.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.into())
    }
}

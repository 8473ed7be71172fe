//! A nightly job in three processes whose clocks differ: at every tick exactly one of them runs it.
//!
//! `cargo run -p lock-examples --features nightly_job --bin nightly_job` starts a Redis of its own.
//! With `--url redis://127.0.0.1/` it uses that one. A "night" lasts 6 seconds here, so that three
//! of them fit in half a minute. `--no-hold` shows why the lock alone is not enough: the job is
//! done long before the last clock strikes.
//!
//! The processes, the scheduler (`tokio-cron-scheduler`) and the Redis are real. The clocks are
//! simulated. All processes of a machine have one system clock, so each process gives its scheduler
//! a time zone that is a second off. For a schedule this is the same as a clock that is a second
//! fast or slow.

mod args;
mod job;
mod night;
mod process;
mod processes;
mod redis;

use std::error::Error;
use std::process::ExitCode;

use crate::args::{Args, Role};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(status) => status,
        Err(error) => lock_examples::give_up("nightly_job", &*error),
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::read()?;
    if let Some(Role::Process(args)) = args.role {
        process::run(args).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let own = match &args.url {
        Some(_) => None,
        None => {
            let otherwise = ", or name one that runs with --url redis://host:port/";
            Some(redis::Server::start(otherwise).await?)
        }
    };
    let url = own.as_ref().map(redis::Server::url).or(args.url.clone());
    let nights = processes::run(&args, &url.unwrap_or_default()).await?;
    Ok(nights.report(&args))
}

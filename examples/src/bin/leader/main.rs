//! Three replicas, of which one leads: it sends mails, and the others stand by.
//!
//! `cargo run -p lock-examples --features leader --bin leader` starts a Redis of its own and three
//! processes. It kills the leader, stops the next one (`SIGSTOP`) and lets it go on later, and cuts
//! the one after that off from Redis. A lease is 2 s here, so each change takes about 3 s at most.
//!
//! What a service needs of this is in `replica.rs`.

mod args;
mod line;
mod mailbox;
mod network;
#[path = "../nightly_job/redis.rs"]
mod redis;
mod replica;
mod replicas;
mod trials;

use std::error::Error;
use std::process::ExitCode;

use crate::args::{Args, Role};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(status) => status,
        Err(error) => lock_examples::give_up("leader", &*error),
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let args: Args = lock_examples::read()?;
    match args.role {
        Some(Role::Replica) => {
            replica::run().await?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let redis = redis::Server::start("").await?;
            trials::run(&redis.socket()).await
        }
    }
}

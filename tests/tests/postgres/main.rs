//! What is PostgreSQL's own: its functions and rights, `lock_check`, and what stands around it.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod around;
mod checked;
mod clock_steps;
mod cost;
mod credentials;
mod crowd;
mod drift;
mod first;
mod functions;
mod growth;
mod hosts;
mod kept_rows;
mod keyed_pooler;
mod limits;
mod lock_order;
mod moments;
mod options;
mod poolers;
mod prepared;
mod set_up;
mod standstill;
mod strangers;
mod tls;
mod told;
mod transactions;

use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};

/// A client that does not complain that the machine is busy.
fn builder(url: &str) -> LockClientBuilder {
    LockClient::builder()
        .url(url)
        .command_timeout(Duration::from_secs(5))
        .connect_timeout(Duration::from_secs(10))
}

async fn client(url: &str) -> LockClient {
    builder(url).connect().await.unwrap()
}

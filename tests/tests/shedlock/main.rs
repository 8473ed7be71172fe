//! `layout=shedlock` beside the real ShedLock, on Redis and in PostgreSQL's table: each side skips
//! what the other has.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod java;
mod jobs;
mod locked_rows;
mod on_postgres;
mod on_redis;

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::ChildProcess;

/// A store that both sides share.
pub(crate) struct Shared {
    /// Ours.
    pub(crate) url: String,
    /// What the worker in Java is told.
    pub(crate) provider: Vec<String>,
}

impl Shared {
    /// The worker in Java, and a client. `None` where there is no Java.
    pub(crate) async fn both(&self) -> Option<(ChildProcess, LockClient)> {
        let java = java::worker(&self.provider).await?;
        Some((java, client(&self.url).await))
    }
}

pub(crate) async fn client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url).wait(Duration::from_secs(30));
    let builder = builder.command_timeout(Duration::from_secs(5));
    let builder = builder.connect_timeout(Duration::from_secs(10));
    builder.connect().await.unwrap()
}

//! `layout=redisson` beside the real Redisson from Maven, in a process of its own. Without Maven
//! and a compiler for Java, those tests say so and are left out.
//!
//! `REDISSON_VERSION` chooses another version; `REDISSON_SECONDS` how long both sides contend.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod bad_input;
mod contention;
mod deaths;
mod fair;
mod lost_replies;
mod other_hands;
mod protocol;
mod seen;
mod servers;
mod views;
mod wakes;

use std::path::Path;
use std::time::Duration;

use lock_runtime::{Layout, LockClient};
use lock_testkit::{ChildProcess, java_classpath, start_java};

use servers::Servers;

/// More than a slow machine needs.
const LONG: Duration = Duration::from_secs(60);
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/redisson");
/// The newest of each major version that Maven has for Java 17.
const VERSIONS: [&str; 2] = ["4.7.0", "3.52.0"];

/// The version to run beside.
fn version() -> String {
    std::env::var("REDISSON_VERSION").unwrap_or_else(|_| VERSIONS[0].to_owned())
}

/// A service in Java.
struct Java {
    process: ChildProcess,
    /// Its client's UUID.
    id: String,
}

impl Java {
    async fn start(servers: &impl Servers, watchdog: Duration) -> Option<Self> {
        Self::of_version(servers, watchdog, &version()).await
    }

    async fn of_version(servers: &impl Servers, watchdog: Duration, version: &str) -> Option<Self> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let classpath = java_classpath(target, Path::new(FOLDER), Some(version))?;
        let (url, watchdog) = (servers.url(), watchdog.as_millis().to_string());
        let mut process = start_java(&classpath, &["RedissonWorker", &url, &watchdog]);
        let connected = process.wait_within(LONG, "connected ").await;
        let id = connected.text;
        Some(Self { process, id })
    }

    /// Has a thread do something, and returns what it answers.
    async fn ask(&mut self, thread: &str, what: &str) -> String {
        self.begin(thread, what);
        self.answer(thread).await
    }

    fn begin(&mut self, thread: &str, what: &str) {
        self.process.send(&format!("{thread} {what}"));
    }

    async fn answer(&mut self, thread: &str) -> String {
        let answer = self.process.wait_within(LONG, &format!("{thread} ")).await;
        answer.text
    }
}

/// A client of ours, with a lease that is renewed.
async fn client(servers: &impl Servers, lease: Duration) -> LockClient {
    let builder = LockClient::builder()
        .url(servers.url())
        .layout(Layout::Redisson);
    let builder = builder.wait(LONG).lease(lease).name("ours");
    // Servers are slow now and then on a busy machine.
    let builder = builder.command_timeout(Duration::from_secs(3));
    builder
        .connect_timeout(Duration::from_secs(10))
        .connect()
        .await
        .unwrap()
}

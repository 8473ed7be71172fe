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

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lock_runtime::{Layout, LockClient};
use lock_testkit::{ChildProcess, left_out};

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

/// Fetches the jars of a version and compiles the worker beside them: `FOLDER VERSION SOURCE`.
const PREPARE: &str = r#"
    test -e "$0/redisson-$1.jar" ||
        mvn -q -B -f "$2/pom.xml" "-Dredisson=$1" dependency:copy-dependencies \
            "-DoutputDirectory=$0" || exit 1
    test "$0/RedissonWorker.class" -nt "$2/RedissonWorker.java" ||
        javac -d "$0" -cp "$0/*" "$2/RedissonWorker.java"
"#;

/// Redisson's jars and the worker. `None` where neither they nor Maven and a compiler for Java are.
fn class_path(version: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.join(format!("redisson-{version}"));
    // Tests in other threads and processes make the same.
    let prepared = Command::new("flock")
        .arg(target.join("redisson-jars.lock"))
        .args(["sh", "-c", PREPARE, folder.to_str()?, version, FOLDER])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    prepared
        .is_ok_and(|status| status.success())
        .then_some(folder)
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
        let Some(folder) = class_path(version) else {
            left_out("it needs Maven and a compiler for Java");
            return None;
        };
        let folder = folder.display();
        let class_path = format!("{folder}:{folder}/*");
        let (url, watchdog) = (servers.url(), watchdog.as_millis().to_string());
        let arguments = [
            "-Xmx192m",
            "-XX:+UseSerialGC",
            "-cp",
            &class_path,
            "RedissonWorker",
            &url,
            &watchdog,
        ];
        let mut process = ChildProcess::start("java", &arguments);
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

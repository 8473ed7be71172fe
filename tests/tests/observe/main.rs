//! What can be seen of a client from outside: its events, its counters and its spans.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod events;
mod hostile;
mod lazy;
mod spans;
mod stats;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_runtime::LockClient;
use lock_runtime::observe::{Event, Observer, What};
use lock_testkit::{RedisServer, eventually};

/// What an observer was told, in words.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Observer for Told {
    fn observe(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(words(event));
    }
}

impl Told {
    /// What it was told about one lock, in its order.
    fn about(&self, template: &str) -> Vec<String> {
        let told = self.0.lock().unwrap();
        let about = told.iter().filter_map(|one| one.strip_prefix(template));
        about.map(|one| one.trim_start().to_owned()).collect()
    }

    /// How often it was told this.
    fn times(&self, what: &str) -> usize {
        let told = self.0.lock().unwrap();
        told.iter().filter(|one| one.contains(what)).count()
    }

    async fn eventually(&self, what: &str) {
        eventually(&format!("{what:?} is told"), async || self.times(what) > 0).await;
    }
}

fn words(event: &Event<'_>) -> String {
    let of = event.lock.map_or("client", |lock| {
        lock.template().unwrap_or("without a template")
    });
    let kind = event.lock.map_or("", |lock| lock.kind.as_str());
    let what = match event.what {
        What::Asked => format!("asked {kind}"),
        What::Queued => "queued".to_owned(),
        What::Granted { how, .. } => format!("granted {}", how.as_str()),
        What::Busy { .. } => "busy".to_owned(),
        What::Unavailable { error, .. } => format!("unavailable {:?}", error.kind()),
        What::Refused { error, .. } => format!("refused {error}"),
        What::Cancelled { .. } => "cancelled".to_owned(),
        What::Lost { reason, .. } => format!("lost {reason:?}"),
        What::Released { .. } => "released".to_owned(),
        What::Renewed { late, .. } if late.is_zero() => "renewed".to_owned(),
        What::Renewed { .. } => "renewed late".to_owned(),
        What::Candidate => "candidate".to_owned(),
        What::TermBegan => "term began".to_owned(),
        What::TermEnded { how, .. } => format!("term {}", how.as_str()),
        What::Undoing { .. } => "undoing".to_owned(),
        What::Undone { pending, .. } => format!("undone {pending}"),
        What::Command { verb, error, .. } => {
            let error = error.map(|error| error.kind());
            format!("command {} {error:?}", verb.as_str())
        }
        What::Started => "started".to_owned(),
        What::Unreachable { error, .. } => format!("unreachable {:?}", error.kind()),
        What::Connected { server, .. } => format!("connected {server}"),
        What::Disconnected { server, .. } => format!("disconnected {server}"),
        other => format!("{other:?}"),
    };
    format!("{of} {what}")
}

/// A client in memory, and what its observer is told.
async fn observed() -> (LockClient, Told) {
    let told = Told::default();
    let builder = LockClient::builder().url("memory:").observer(told.clone());
    (builder.connect().await.unwrap(), told)
}

/// A client of a server, and what its observer is told.
async fn observed_at(server: &RedisServer) -> (LockClient, Told) {
    let told = Told::default();
    let builder = LockClient::builder().url(server.url());
    // A busy machine takes its time. After ten milliseconds others would have their turn.
    let builder = builder
        .connect_timeout(Duration::from_secs(10))
        .local_tenure(64, Duration::from_secs(60));
    let client = builder.observer(told.clone()).connect().await.unwrap();
    (client, told)
}

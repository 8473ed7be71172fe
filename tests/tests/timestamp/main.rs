//! `layout=timestamp` beside a client of the old recipe: the value of a lock is the time of its
//! end. Ours never breaks exclusion. Each break that the recipe itself makes possible has a test
//! that names it, in `breaks`.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod bad_input;
mod both;
mod breaks;
mod hostile_servers;
mod late_replies;

use std::path::Path;
use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{ChildProcess, Event, RedisServer, left_out, python_with};

pub(crate) const KEY: &str = "stock:42";

/// How the recipe's client is started.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) unit: &'static str,
    pub(crate) ttl: &'static str,
    pub(crate) ahead_ms: i64,
}

pub(crate) const MILLIS: Form = Form {
    unit: "ms",
    ttl: "no-ttl",
    ahead_ms: 0,
};

/// A client of the recipe, in a process of its own. `None` where there is no Python.
pub(crate) async fn recipe(server: &RedisServer, form: Form) -> Option<ChildProcess> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(python) = python_with(target, &["redis==8.1.0"]) else {
        left_out("it needs Python, and pip with the package that it fetches");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/timestamp/recipe.py");
    let (port, ahead) = (server.port().to_string(), form.ahead_ms.to_string());
    let arguments = [script, &port, form.unit, form.ttl, &ahead];
    let mut recipe = ChildProcess::start(python, &arguments);
    recipe.wait_for("ready").await;
    Some(recipe)
}

/// A client of ours that shares its keys.
pub(crate) async fn client(server: &RedisServer, unit: &str, skew: &str) -> LockClient {
    let builder = LockClient::builder().url(url(server, unit, skew));
    let builder = builder.wait(Duration::from_secs(30));
    let builder = builder.command_timeout(Duration::from_secs(5));
    builder.connect().await.unwrap()
}

pub(crate) fn url(server: &RedisServer, unit: &str, skew: &str) -> String {
    let address = server.addr();
    format!("redis://{address}/?layout=timestamp&unit={unit}&skew={skew}")
}

/// What the recipe's client answers to a command.
pub(crate) async fn ask(recipe: &mut ChildProcess, command: &str) -> String {
    recipe.send(command);
    recipe.wait_for("").await.text
}

/// The number in an event's word at this place, from zero.
pub(crate) fn number(event: &str, at: usize) -> u64 {
    event.split_whitespace().nth(at).unwrap().parse().unwrap()
}

/// All turns that a worker took, until it says that it has contended.
pub(crate) async fn turns(worker: &mut ChildProcess) -> Vec<(u64, u64)> {
    let limit = Duration::from_secs(120);
    worker.wait_within(limit, "contended").await;
    let turn = |event: Event| {
        let turn = event.text.strip_prefix("turn ")?;
        let numbers: Vec<u64> = turn
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        let [.., from, to] = numbers[..] else {
            return None;
        };
        Some((from, to))
    };
    worker.take_events().into_iter().filter_map(turn).collect()
}

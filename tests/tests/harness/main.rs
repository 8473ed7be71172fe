//! The harness itself: every fault does what its name says, and the counts are exact. The other
//! tests are worth no more than these.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod driver;
mod process;
mod proxy;
mod redis_server;
mod run;

use std::time::{Duration, Instant};

use lock_testkit::{ChildProcess, Proxy, RedisServer, eventually, eventually_within};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo};
use tokio::time::timeout;

/// Long enough for an answer over the loopback interface, on a busy machine too.
const SOON: Duration = Duration::from_secs(10);
/// How long to look whether something does not come.
const A_WHILE: Duration = Duration::from_millis(150);

/// A connection that sends only the test's own requests: no timeouts, no greeting.
async fn connect(url: &str) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None);
    let info = url.into_connection_info().unwrap();
    let session = info.redis_settings().clone().set_skip_set_lib_name();
    Client::open(info.set_redis_settings(session))
        .unwrap()
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .unwrap()
}

async fn send(connection: &MultiplexedConnection, words: &[&str]) -> redis::RedisResult<String> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command.query_async(&mut connection.clone()).await
}

async fn ping(connection: &MultiplexedConnection) -> redis::RedisResult<String> {
    send(connection, &["PING"]).await
}

async fn await_clients(server: &RedisServer, count: usize) {
    eventually(&format!("the server has {count} clients"), async || {
        server.client_count().await == count
    })
    .await;
}

fn exists(process_id: u32) -> bool {
    let pid = nix::unistd::Pid::from_raw(process_id.try_into().unwrap());
    nix::sys::signal::kill(pid, None).is_ok()
}

#[tokio::test]
#[should_panic(expected = "main.rs")]
async fn eventually_gives_up_and_names_its_caller() {
    eventually_within(A_WHILE, "pigs fly", async || false).await;
}

#[tokio::test]
#[should_panic(expected = "it never happened that an answer comes")]
async fn eventually_gives_up_on_a_condition_that_hangs() {
    eventually_within(A_WHILE, "an answer comes", async || {
        std::future::pending().await
    })
    .await;
}

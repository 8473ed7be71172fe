//! A test's questions to a server, over connections independent of the code under test.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError, RedisResult, Value};

use super::RedisServer;
use crate::RequestLog;

/// Longer than any `DEBUG SLEEP` of a test.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

impl RedisServer {
    /// Sends one command over a new connection.
    ///
    /// # Panics
    ///
    /// When the server refuses the command or does not answer within 30 s.
    pub async fn command(&self, words: &[&str]) -> Value {
        self.query(words).await
    }

    /// Like [`command`](Self::command), with the reply as a Rust type.
    ///
    /// # Panics
    ///
    /// As for [`command`](Self::command), and if the reply is not a `T`.
    pub async fn query<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let answer = self.try_query(words).await;
        answer.unwrap_or_else(|error| panic!("{} at {}: {error}", words.join(" "), self.addr()))
    }

    /// Like [`query`](Self::query), of a server that may be down, or loses its connections.
    pub async fn try_query<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        Ok(T::from_redis_value(self.try_command(words).await?)?)
    }

    /// Like [`command`](Self::command), for a command that may be refused or a server that may be
    /// down.
    ///
    /// # Errors
    ///
    /// The server's error reply, or the failure to reach it.
    pub async fn try_command(&self, words: &[&str]) -> Result<Value, RedisError> {
        ask(self.settings.client(self.port()), words, ANSWER_LIMIT).await
    }

    /// True if a `PING` is answered within `limit`.
    pub async fn responds_within(&self, limit: Duration) -> bool {
        ask(self.settings.client(self.port()), &["PING"], limit)
            .await
            .is_ok()
    }

    /// The number of times that a command has run since the start or
    /// [`reset_stats`](Self::reset_stats), **including runs inside scripts** (`INFO commandstats`).
    /// The name has the form used there: `"set"`, `"client|list"`. For requests of clients, see
    /// [`requests`](Self::requests).
    pub async fn command_calls(&self, name: &str) -> u64 {
        let statistics: String = self.query(&["INFO", "commandstats"]).await;
        let prefix = format!("cmdstat_{}:calls=", name.to_lowercase());
        statistics
            .lines()
            .find_map(|line| line.strip_prefix(&prefix)?.split(',').next())
            .map_or(0, |calls| calls.parse().expect("calls is a number"))
    }

    /// `CONFIG RESETSTAT`: all counts restart at zero.
    pub async fn reset_stats(&self) {
        self.command(&["CONFIG", "RESETSTAT"]).await;
    }

    /// Records from now on what clients send to this server.
    pub async fn requests(&self) -> RequestLog {
        RequestLog::start(self.addr(), self.settings.password.as_deref()).await
    }

    /// The keys that match a pattern, sorted. `"*"` matches all.
    pub async fn keys(&self, pattern: &str) -> Vec<String> {
        let mut keys: Vec<String> = self.query(&["KEYS", pattern]).await;
        keys.sort();
        keys
    }

    /// The channels with subscribers, sorted.
    pub async fn channels(&self) -> Vec<String> {
        let mut channels: Vec<String> = self.query(&["PUBSUB", "CHANNELS"]).await;
        channels.sort();
        channels
    }

    /// The same, without the channels on which clients hear each other: those on which they hear of
    /// their locks.
    pub async fn grant_channels(&self) -> Vec<String> {
        let mut channels = self.channels().await;
        channels.retain(|channel| !channel.contains("%client:"));
        channels
    }

    /// The number of connected clients, without the one that asks.
    ///
    /// On a busy machine, the system may be slow to tell the server that a connection has ended,
    /// even one of these questions. So expect a number with [`eventually`](crate::eventually).
    pub async fn client_count(&self) -> usize {
        let clients: String = self.query(&["CLIENT", "LIST"]).await;
        clients.lines().count() - 1
    }
}

/// True if the process `process_id` answers at `client`'s address and has loaded its data. The id
/// matters: if the port was lost in a race, another server answers there.
pub(super) async fn is_ready(client: redis::Client, process_id: u32) -> bool {
    let answer = ask(client, &["INFO"], Duration::from_secs(1)).await;
    let Ok(Ok(information)) = answer.map(String::from_redis_value) else {
        return false;
    };
    let has = |wanted: &str| information.lines().any(|line| line == wanted);
    let is_sentinel = ["redis", "server"].map(|what| has(&format!("{what}_mode:sentinel")));
    let ready = has("loading:0") || is_sentinel.contains(&true);
    has(&format!("process_id:{process_id}")) && ready
}

/// Sends one request over a connection that is closed when this returns.
async fn ask(client: redis::Client, words: &[&str], limit: Duration) -> RedisResult<Value> {
    let mut command = Cmd::new();
    for word in words {
        command.arg(*word);
    }
    // The blocking client closes at once, not some time later in a task, so it is never counted
    // among the clients. It works in any runtime, even one with a paused clock.
    tokio::task::spawn_blocking(move || {
        let mut connection = client.get_connection_with_timeout(limit)?;
        connection.set_read_timeout(Some(limit))?;
        connection.set_write_timeout(Some(limit))?;
        command.query(&mut connection)
    })
    .await
    .expect("the blocking client does not panic")
}
